/** Searching in lines that are here already. */

import type { Line } from "./buffer";

/** Places of those in `lines` that hold the text, in whatever case; all places for no text. */
export function findLines(lines: readonly Line[], text: string, from = 0): number[] {
  const wanted = text.toLowerCase();
  const found: number[] = [];
  for (let at = from; at < lines.length; at += 1) {
    if (lines[at]?.text.toLowerCase().includes(wanted) === true) found.push(at);
  }
  return found;
}

/** A line in parts: [text, whether it is what was searched for]. */
export function parts(line: string, text: string): readonly (readonly [string, boolean])[] {
  if (text === "") return [[line, false]];
  const lower = line.toLowerCase();
  // Where lowering changes the length (İ), places in the one are not places in the other.
  if (lower.length !== line.length) return [[line, false]];
  const wanted = text.toLowerCase();
  const found: (readonly [string, boolean])[] = [];
  let at = 0;
  for (;;) {
    const next = lower.indexOf(wanted, at);
    if (next === -1) break;
    if (next > at) found.push([line.slice(at, next), false]);
    found.push([line.slice(next, next + wanted.length), true]);
    at = next + wanted.length;
  }
  if (at < line.length || found.length === 0) found.push([line.slice(at), false]);
  return found;
}

/** The match to go to next: behind or before the present one, around the ends. null where there is none. */
export function nextMatch(matches: readonly number[], present: number | null, step: 1 | -1): number | null {
  if (matches.length === 0) return null;
  if (present === null) return (step === 1 ? matches[0] : matches.at(-1)) ?? null;
  const next =
    step === 1 ? matches.find((at) => at > present) : matches.findLast((at) => at < present);
  return next ?? (step === 1 ? matches[0] : matches.at(-1)) ?? null;
}
