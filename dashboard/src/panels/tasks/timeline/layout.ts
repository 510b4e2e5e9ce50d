/** A task's life as bars: when it waited, was taken and ran, execution by execution. Pure: the present comes in. */

import type { wire } from "@/api";

export type SegmentKind = "waiting" | "claimed" | "running" | "due";

export interface Segment {
  readonly kind: SegmentKind;
  /** Milliseconds since the epoch. */
  readonly from: number;
  readonly to: number;
  /** It goes on. */
  readonly isOpen: boolean;
}

export interface TimelineRow {
  /** null: what happens now and is no execution yet. */
  readonly attempt: wire.AttemptShown | null;
  readonly segments: readonly Segment[];
}

export type TimelineTask = Pick<
  wire.TaskDetail,
  "state" | "run_no" | "created_at" | "enqueued_at" | "eligible_at" | "claimed_at" | "finished_at" | "attempts" | "more_attempts"
>;

const HELD: ReadonlySet<string> = new Set(["claimed", "running", "paused", "cancelling"]);
const ENDED: ReadonlySet<string> = new Set(["completed", "failed", "cancelled", "rejected"]);

export function rowsOf(task: TimelineTask, now: number): readonly TimelineRow[] {
  const rows: TimelineRow[] = [];
  // From when on it waits for its next execution; null where that is not known.
  let since: number | null = task.more_attempts ? null : Date.parse(task.created_at);
  let run = task.more_attempts ? (task.attempts[0]?.run_no ?? 1) : 1;
  for (const attempt of task.attempts) {
    if (attempt.run_no !== run) {
      // Somebody let it run again: when is known of the last run alone.
      since = attempt.run_no === task.run_no ? Date.parse(task.enqueued_at) : null;
      run = attempt.run_no;
    }
    rows.push({ attempt, segments: segmentsOf(attempt, since, now) });
    since = at(attempt.finished_at) ?? since;
  }
  const current = currentOf(task, run === task.run_no ? since : Date.parse(task.enqueued_at), now);
  if (current.length > 0) rows.push({ attempt: null, segments: current });
  return rows;
}

function segmentsOf(attempt: wire.AttemptShown, since: number | null, now: number): readonly Segment[] {
  const claimed = at(attempt.claimed_at);
  const started = at(attempt.started_at);
  const finished = at(attempt.finished_at);
  const taken = claimed ?? started ?? finished;
  const isOpen = finished === null;
  const end = finished ?? now;
  const found: (Segment | null)[] = [
    since === null || taken === null ? null : bar("waiting", since, taken),
    claimed === null ? null : bar("claimed", claimed, started ?? end, isOpen && started === null),
    started === null ? null : bar("running", started, end, isOpen),
  ];
  return found.filter((segment) => segment !== null);
}

/** What it does now, where no execution says so. */
function currentOf(task: TimelineTask, since: number | null, now: number): readonly Segment[] {
  if (ENDED.has(task.state)) {
    // It ended without being taken (again): cancelled while it waited, rejected, expired.
    const end = at(task.finished_at);
    const last = task.attempts.at(-1);
    if (end === null || since === null || (last !== undefined && last.run_no === task.run_no)) return [];
    return present([bar("waiting", since, end)]);
  }
  if (HELD.has(task.state)) {
    const claimed = at(task.claimed_at);
    const last = task.attempts.at(-1);
    if (claimed === null || (last !== undefined && last.finished_at === null)) return [];
    return present([since === null ? null : bar("waiting", since, claimed), bar("claimed", claimed, now, true)]);
  }
  const due = Date.parse(task.eligible_at);
  return present([
    since === null ? null : bar("waiting", since, now, true),
    task.state === "pending" && due > now ? bar("due", now, due, true) : null,
  ]);
}

function present(segments: readonly (Segment | null)[]): readonly Segment[] {
  return segments.filter((segment) => segment !== null);
}

/** Clocks of two machines may differ: nothing ends before it begins. */
function bar(kind: SegmentKind, from: number, to: number, isOpen = false): Segment | null {
  if (Number.isNaN(from) || Number.isNaN(to)) return null;
  return { kind, from, to: Math.max(from, to), isOpen };
}

function at(instant: string | null): number | null {
  return instant === null ? null : Date.parse(instant);
}

export interface Axis {
  readonly from: number;
  readonly to: number;
  /** Waits that are drawn shorter than they were. */
  readonly breaks: readonly { readonly from: number; readonly to: number }[];
  /** Where an instant is: 0 at the left, 1 at the right. */
  place(at: number): number;
}

/** When waiting takes more than this many times what the work takes, long waits are cut short. */
const MOST_IDLE = 3;

export function axisOf(rows: readonly TimelineRow[]): Axis {
  const segments = rows.flatMap((row) => row.segments);
  const from = Math.min(...segments.map((segment) => segment.from));
  const to = Math.max(...segments.map((segment) => segment.to));
  if (segments.length === 0) return { from: 0, to: 0, breaks: [], place: () => 0 };
  const pieces = piecesOf(busy(segments), from, to);
  const idle = pieces.filter((piece) => !piece.isBusy);
  const worked = sum(pieces.filter((piece) => piece.isBusy).map(lengthOf));
  const waited = sum(idle.map(lengthOf));
  const cut = worked > 0 && waited > MOST_IDLE * worked;
  // All waits together take what the work takes.
  const most = cut ? worked / idle.length : Number.POSITIVE_INFINITY;
  const weights = pieces.map((piece) => (piece.isBusy ? lengthOf(piece) : Math.min(lengthOf(piece), most)));
  const total = sum(weights);
  const place = (instant: number): number => {
    if (total <= 0) return 0;
    let before = 0;
    for (const [index, piece] of pieces.entries()) {
      const weight = weights[index] ?? 0;
      if (instant <= piece.to || index === pieces.length - 1) {
        const part = lengthOf(piece) === 0 ? 0 : (instant - piece.from) / lengthOf(piece);
        return Math.min(1, Math.max(0, (before + weight * Math.min(1, Math.max(0, part))) / total));
      }
      before += weight;
    }
    return 1;
  };
  const breaks = idle.filter((piece) => lengthOf(piece) > most).map(({ from: start, to: end }) => ({ from: start, to: end }));
  return { from, to, breaks, place };
}

interface Piece {
  readonly from: number;
  readonly to: number;
  readonly isBusy: boolean;
}

/** When a worker had it, in order, joined where it overlaps. */
function busy(segments: readonly Segment[]): readonly Segment[] {
  const found: Segment[] = [];
  const held = segments.filter((segment) => segment.kind === "claimed" || segment.kind === "running");
  for (const segment of [...held].sort((one, other) => one.from - other.from)) {
    const last = found.at(-1);
    if (last !== undefined && segment.from <= last.to) found[found.length - 1] = { ...last, to: Math.max(last.to, segment.to) };
    else found.push(segment);
  }
  return found;
}

function piecesOf(held: readonly Segment[], from: number, to: number): readonly Piece[] {
  const pieces: Piece[] = [];
  let end = from;
  for (const segment of held) {
    if (segment.from > end) pieces.push({ from: end, to: segment.from, isBusy: false });
    pieces.push({ from: segment.from, to: segment.to, isBusy: true });
    end = segment.to;
  }
  if (to > end) pieces.push({ from: end, to, isBusy: false });
  return pieces;
}

function lengthOf({ from, to }: { readonly from: number; readonly to: number }): number {
  return to - from;
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, each) => total + each, 0);
}

/** Seconds of one kind; null where there is none. */
export function secondsOf(row: TimelineRow, kind: SegmentKind): number | null {
  const found = row.segments.find((segment) => segment.kind === kind);
  return found === undefined ? null : lengthOf(found) / 1000;
}
