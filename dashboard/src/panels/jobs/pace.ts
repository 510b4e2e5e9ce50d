/** How often something that costs the server time is asked for. */

const LEAST = 1000; // milliseconds
const MOST = 60_000;
/** Asking may take this part of the time: what takes a second is asked for each ten. */
const SHARE = 0.1;

/** Milliseconds from one answer to the next question. */
export function pauseAfter(took: number): number {
  return Math.min(MOST, Math.max(LEAST, took / SHARE - took));
}

/** Of something that changes without being announced: less often. */
export function pollAfter(took: number): number {
  return Math.max(3000, pauseAfter(took));
}
