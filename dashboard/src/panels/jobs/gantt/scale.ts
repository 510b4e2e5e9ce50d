/** A stretch of time and where in it things are. Milliseconds; pure. */

export interface Span {
  readonly from: number;
  readonly to: number;
}

/** Nobody needs to tell less than this apart. */
const LEAST = 20;
const MARGIN = 0.02;

/** All of it, with a little room on both sides. */
export function wholeSpan(since: number, until: number): Span {
  const length = Math.max(LEAST, until - since);
  return { from: since - length * MARGIN, to: since + length * (1 + MARGIN) };
}

export function lengthOf(span: Span): number {
  return span.to - span.from;
}

/** Longer (factor above 1) or shorter, with the instant at a part of the width staying where it is. */
export function zoomedSpan(span: Span, at: number, factor: number, whole: Span): Span {
  const length = Math.min(lengthOf(whole), Math.max(LEAST, lengthOf(span) * factor));
  const fixed = span.from + lengthOf(span) * at;
  return keptIn({ from: fixed - length * at, to: fixed + length * (1 - at) }, whole);
}

/** Moved by a part of its length. */
export function movedSpan(span: Span, by: number, whole: Span): Span {
  const distance = lengthOf(span) * by;
  return keptIn({ from: span.from + distance, to: span.to + distance }, whole);
}

/** Inside the whole, of the same length where that has room. */
export function keptIn(span: Span, whole: Span): Span {
  const length = Math.min(lengthOf(span), lengthOf(whole));
  const from = Math.min(Math.max(span.from, whole.from), whole.to - length);
  return { from, to: from + length };
}

/** Where an instant is, as a part of the width; outside below 0 and above 1. */
export function partAt(span: Span, time: number): number {
  return (time - span.from) / lengthOf(span);
}

const SECOND = 1000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;
const STEPS = [
  1, 2, 5, 10, 20, 50, 100, 200, 500,
  SECOND, 2 * SECOND, 5 * SECOND, 10 * SECOND, 15 * SECOND, 30 * SECOND,
  MINUTE, 2 * MINUTE, 5 * MINUTE, 10 * MINUTE, 15 * MINUTE, 30 * MINUTE,
  HOUR, 2 * HOUR, 3 * HOUR, 6 * HOUR, 12 * HOUR,
  DAY, 2 * DAY, 7 * DAY, 14 * DAY, 30 * DAY,
]; // prettier-ignore

export interface AxisTick {
  readonly time: number;
  readonly label: string;
}

/**
 * Round distances from the beginning of the job, at most `most` of them: +10 s, +20 s. What counts in such a picture is how
 * long things took, and the same clock for everybody.
 */
export function axisTicks(span: Span, start: number, most: number): readonly AxisTick[] {
  const rough = lengthOf(span) / Math.max(1, most);
  const step = STEPS.find((each) => each >= rough) ?? Math.ceil(rough / (30 * DAY)) * 30 * DAY;
  const first = Math.ceil((span.from - start) / step);
  const last = Math.floor((span.to - start) / step);
  return Array.from({ length: Math.max(0, last - first + 1) }, (_, at) => {
    const distance = (first + at) * step;
    return { time: start + distance, label: distanceText(distance, step) };
  });
}

/** As exact as the step asks for. */
export function distanceText(milliseconds: number, step: number): string {
  const sign = milliseconds < 0 ? "−" : "+";
  const size = Math.abs(milliseconds);
  if (size === 0) return "0";
  if (size < SECOND) return `${sign}${size} ms`;
  const digits = step >= SECOND ? 0 : step >= 100 ? 1 : step >= 10 ? 2 : 3;
  if (size < MINUTE) return `${sign}${(size / SECOND).toFixed(digits)} s`;
  const seconds = (size % MINUTE) / SECOND;
  const tail = step < MINUTE ? `:${seconds.toFixed(digits).padStart(digits === 0 ? 2 : digits + 3, "0")}` : "";
  const minutes = Math.floor(size / MINUTE);
  if (size < HOUR) return tail === "" ? `${sign}${minutes} min` : `${sign}${minutes}${tail}`;
  const hours = Math.floor(size / HOUR);
  const rest = String(minutes % 60).padStart(2, "0");
  if (size < 2 * DAY) return step >= HOUR ? `${sign}${hours} h` : `${sign}${hours}:${rest}${tail || " h"}`;
  const days = Math.floor(size / DAY);
  return step >= DAY ? `${sign}${days} d` : `${sign}${days} d ${hours % 24} h`;
}
