/** Times and durations as people read them. Pure: the present comes in. */

const SECOND = 1000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

/** In the viewer's zone, with seconds. */
export function localTime(at: Date, zone?: string): string {
  return new Intl.DateTimeFormat(undefined, {
    year: "numeric",
    month: "short",
    day: "numeric",
    hour: "2-digit",
    minute: "2-digit",
    second: "2-digit",
    hour12: false,
    ...(zone === undefined ? {} : { timeZone: zone }),
  }).format(at);
}

/** As the server and its logs write it. */
export function utcTime(at: Date): string {
  return `${at.toISOString().slice(0, 19).replace("T", " ")} UTC`;
}

/** "just now", "12 s ago", "in 3 min". */
export function relativeTime(at: Date, now: number): string {
  const difference = at.getTime() - now;
  const size = Math.abs(difference);
  if (size < SECOND) return "just now";
  const text = roughly(size);
  return difference < 0 ? `${text} ago` : `in ${text}`;
}

function roughly(milliseconds: number): string {
  if (milliseconds < MINUTE) return `${Math.floor(milliseconds / SECOND)} s`;
  if (milliseconds < HOUR) return `${Math.floor(milliseconds / MINUTE)} min`;
  if (milliseconds < 2 * DAY) return `${Math.floor(milliseconds / HOUR)} h`;
  return `${Math.floor(milliseconds / DAY)} d`;
}

/** A length of time, to three figures: "3.4 ms", "12.5 s", "4 min 10 s", "2 h 5 min", "3 d 4 h". */
export function durationText(seconds: number): string {
  if (!Number.isFinite(seconds)) return "–";
  const size = Math.abs(seconds);
  const sign = seconds < 0 ? "−" : "";
  if (size === 0) return "0 s";
  if (size < 0.001) return `${sign}${figures(size * 1e6)} µs`;
  if (size < 0.9995) return `${sign}${figures(size * 1000)} ms`;
  if (size < 59.95) return `${sign}${figures(size)} s`;
  const whole = Math.round(size);
  if (whole < 3600) return `${sign}${pair(whole, 60, "min", 1, "s")}`;
  if (whole < 86_400) return `${sign}${pair(whole, 3600, "h", 60, "min")}`;
  return `${sign}${pair(whole, 86_400, "d", 3600, "h")}`;
}

function pair(whole: number, large: number, largeUnit: string, small: number, smallUnit: string): string {
  const rest = Math.floor((whole % large) / small);
  return `${Math.floor(whole / large)} ${largeUnit}${rest === 0 ? "" : ` ${rest} ${smallUnit}`}`;
}

function figures(value: number): string {
  return String(Number(value.toPrecision(value >= 100 ? 3 : 2 + Number(value >= 10))));
}

/** Seconds between two instants of the API; null where one is not known. */
export function secondsBetween(from: string | null | undefined, to: string | null | undefined): number | null {
  if (from == null || to == null) return null;
  return (Date.parse(to) - Date.parse(from)) / 1000 + (microsOf(to) - microsOf(from)) / 1e6;
}

/** What is below a millisecond, which a Date does not keep: many a task is quicker. */
function microsOf(instant: string): number {
  return Number((/\.\d{3}(\d{1,3})/.exec(instant)?.[1] ?? "").padEnd(3, "0"));
}
