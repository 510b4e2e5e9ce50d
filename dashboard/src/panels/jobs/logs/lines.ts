/** Lines of a job's tasks in the order of their numbers, from wherever they came: pages, and what is live. */

export interface Line {
  readonly seq: number;
  readonly task: string;
  readonly claim: number;
  readonly at: string;
  readonly stream: string;
  readonly text: string;
}

/** So many are kept; beyond that the oldest go, for who follows wants the newest. */
export const MOST_LINES = 50_000;

/** Both, each number once, in order. What is there already stays the same array where nothing is new. */
export function merged(known: readonly Line[], more: readonly Line[], most = MOST_LINES): readonly Line[] {
  if (more.length === 0) return known;
  const sorted = isRising(more) ? more : [...more].sort((one, other) => one.seq - other.seq);
  const first = sorted[0]?.seq ?? 0;
  const end = known.at(-1)?.seq ?? -1;
  // Nearly always they follow what is known.
  const all = first > end ? [...known, ...sorted] : interleaved(known, sorted);
  if (all.length === known.length) return known;
  return all.length > most ? all.slice(all.length - most) : all;
}

function isRising(lines: readonly Line[]): boolean {
  return lines.every((line, at) => at === 0 || line.seq > (lines[at - 1]?.seq ?? 0));
}

function interleaved(one: readonly Line[], other: readonly Line[]): readonly Line[] {
  const all: Line[] = [];
  let at = 0;
  for (const line of other) {
    for (let next = one[at]; next !== undefined && next.seq < line.seq; next = one[++at]) all.push(next);
    if (one[at]?.seq === line.seq) continue;
    if (all.at(-1)?.seq !== line.seq) all.push(line);
  }
  return [...all, ...one.slice(at)];
}

/** Lines that hold the words, whatever their case, or are of that task (#17). */
export function found(lines: readonly Line[], sought: string): readonly Line[] {
  const words = sought.trim().toLowerCase();
  if (words === "") return lines;
  const task = /^#?(\d+)$/.exec(words)?.[1];
  return lines.filter((line) => line.task === task || line.text.toLowerCase().includes(words));
}

/** Which of `count` rows of one height are seen, and a few on both sides. */
export function rowsSeen(
  top: number,
  height: number,
  rowHeight: number,
  count: number,
  spare = 10,
): { readonly from: number; readonly to: number } {
  const from = Math.max(0, Math.min(count, Math.floor(top / rowHeight) - spare));
  return { from, to: Math.max(from, Math.min(count, Math.ceil((top + height) / rowHeight) + spare)) };
}

/** As a file: time, task, stream, text. */
export function asText(lines: readonly Line[]): string {
  return lines.map((line) => `${line.at} #${line.task} ${line.stream} ${line.text}\n`).join("");
}
