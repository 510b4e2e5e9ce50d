/** The lines that are shown of those that are known: kept up to date without going through all of them again. */

import type { Line } from "./buffer";

export interface Wanted {
  /** Of this execution alone; null: of all. */
  readonly claim: number | null;
  readonly stream: string | null;
  /** Only lines that hold this; empty: whatever they hold. */
  readonly text: string;
}

export const EVERYTHING: Wanted = { claim: null, stream: null, text: "" };

export interface View {
  readonly wanted: Wanted;
  readonly lines: readonly Line[];
  /** How many were gone through, and the last of them: as long as that one is where it was, nothing came before it. */
  readonly through: number;
  readonly last: Line | undefined;
  /** Lines were only added at the end since the view before. */
  readonly grew: boolean;
}

export function viewOf(all: readonly Line[], wanted: Wanted, before?: View): View {
  const last = all.at(-1);
  const goesOn = before !== undefined && same(before.wanted, wanted) && all[before.through - 1] === before.last;
  if (goesOn && before.through === all.length) return before;
  const through = all.length;
  if (same(wanted, EVERYTHING)) return { wanted, lines: [...all], through, last, grew: goesOn };
  const added = (goesOn ? all.slice(before.through) : all).filter((line) => takes(wanted, line));
  const lines = goesOn ? (added.length === 0 ? before.lines : [...before.lines, ...added]) : added;
  return { wanted, lines, through, last, grew: goesOn };
}

function takes(wanted: Wanted, line: Line): boolean {
  return (
    (wanted.claim === null || line.claim === wanted.claim) &&
    (wanted.stream === null || line.stream === wanted.stream) &&
    (wanted.text === "" || line.text.toLowerCase().includes(wanted.text.toLowerCase()))
  );
}

function same(one: Wanted, other: Wanted): boolean {
  return one.claim === other.claim && one.stream === other.stream && one.text === other.text;
}
