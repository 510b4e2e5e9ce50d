/** All lines of a task that are known, in order, each once: read page by page and heard live, in whatever order. */

export interface Line {
  readonly claim: number;
  readonly seq: number;
  readonly at: string;
  readonly stream: string;
  readonly text: string;
}

/** More than this a page does not hold: the rest is in the download. */
export const MOST_LINES = 200_000;

export class LogBuffer {
  private kept: Line[] = [];
  private listeners = new Set<() => void>();
  private count = 0;
  /** Rises with every change. */
  version = 0;

  constructor(private readonly most: number = MOST_LINES) {}

  get lines(): readonly Line[] {
    return this.kept;
  }

  /** Lines that came when there was no room for them. */
  get dropped(): number {
    return this.count;
  }

  get isFull(): boolean {
    return this.kept.length >= this.most;
  }

  /** Those that are known already are left out. */
  add(given: readonly Line[]): void {
    const lines = inOrder(given);
    const first = lines[0];
    if (first === undefined) return;
    const before = this.kept.length;
    const last = this.kept.at(-1);
    if (last === undefined || compare(last, first) < 0) this.append(lines);
    else this.merge(lines, first);
    if (this.kept.length === before) return;
    this.version += 1;
    for (const listener of [...this.listeners]) listener();
  }

  readonly subscribe = (listener: () => void): (() => void) => {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  };

  readonly readVersion = (): number => this.version;

  private append(lines: readonly Line[]): void {
    const room = this.most - this.kept.length;
    this.count += Math.max(0, lines.length - room);
    for (const line of lines.slice(0, Math.max(0, room))) this.kept.push(line);
  }

  /** What is heard live stands behind what is still being read: a page is put in before it. */
  private merge(lines: readonly Line[], first: Line): void {
    const from = placeOf(this.kept, first);
    const behind = this.kept.slice(from);
    const merged: Line[] = [];
    let at = 0;
    for (const line of lines) {
      let other = behind[at];
      while (other !== undefined && compare(other, line) < 0) {
        merged.push(other);
        at += 1;
        other = behind[at];
      }
      if (other !== undefined && compare(other, line) === 0) continue;
      merged.push(line);
    }
    const added = merged.length - at;
    for (; at < behind.length; at += 1) merged.push(behind[at] as Line);
    if (from + merged.length > this.most) {
      this.count += added;
      return;
    }
    this.kept.length = from;
    for (const line of merged) this.kept.push(line);
  }
}

export function compare(one: Line, other: Line): number {
  return one.claim - other.claim || one.seq - other.seq;
}

/** As they are where they rise, which is almost always; a new connection may say again what the last one said. */
function inOrder(lines: readonly Line[]): readonly Line[] {
  const rises = lines.every((line, at) => at === 0 || compare(lines[at - 1] as Line, line) < 0);
  if (rises) return lines;
  const sorted = [...lines].sort(compare);
  return sorted.filter((line, at) => at === 0 || compare(sorted[at - 1] as Line, line) !== 0);
}

/** The place of the first that does not stand before it. */
function placeOf(lines: readonly Line[], line: Line): number {
  let low = 0;
  let high = lines.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (compare(lines[middle] as Line, line) < 0) low = middle + 1;
    else high = middle;
  }
  return low;
}

const ESCAPES = /\u001b(?:\[[0-?]*[ -/]*[@-~]|\][^\u0007\u001b]*(?:\u0007|\u001b\\)|[@-Z\\-_])/g;

/** Without what a terminal would colour by. */
export function plain(text: string): string {
  return text.includes("\u001b") ? text.replaceAll(ESCAPES, "") : text;
}
