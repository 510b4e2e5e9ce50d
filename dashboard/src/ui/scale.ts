/** What a chart computes: round ticks, and from values to places. */

/** About `count` round values that cover from 0 (or the least) to the greatest. */
export function ticks(least: number, greatest: number, count = 4): readonly number[] {
  if (!(greatest > least)) return [least];
  const step = roundStep((greatest - least) / count);
  const first = Math.ceil(least / step - 1e-9);
  const last = Math.floor(greatest / step + 1e-9);
  return Array.from({ length: last - first + 1 }, (_, at) => Number(((first + at) * step).toPrecision(12)));
}

/** The next of 1, 2, 5, 10, … */
export function roundStep(rough: number): number {
  const size = 10 ** Math.floor(Math.log10(rough));
  const lead = rough / size;
  return (lead <= 1 ? 1 : lead <= 2 ? 2 : lead <= 5 ? 5 : 10) * size;
}

/** The top of an axis: a round value at or above the greatest; 1 where everything is 0. */
export function roundTop(greatest: number, count = 4): number {
  if (!(greatest > 0)) return 1;
  const step = roundStep(greatest / count);
  return Number((Math.ceil(greatest / step - 1e-9) * step).toPrecision(12));
}

export function place(value: number, from: readonly [number, number], to: readonly [number, number]): number {
  const [low, high] = from;
  if (high === low) return to[0];
  return to[0] + ((value - low) / (high - low)) * (to[1] - to[0]);
}

/** What a line goes through: where two are further apart than `longest`, nothing is known of the time between them. */
export function withPauses(
  times: readonly number[],
  values: readonly (number | null)[],
  longest = Number.POSITIVE_INFINITY,
): readonly (readonly [number, number | null])[] {
  return times.flatMap((time, place) => {
    const point = [time, values[place] ?? null] as const;
    return time - (times[place - 1] ?? time) > longest ? [[time, null] as const, point] : [point];
  });
}

/** The path of a line; it is broken where a value is missing. */
export function linePath(points: readonly (readonly [number, number | null])[]): string {
  let path = "";
  let drawing = false;
  for (const [x, y] of points) {
    if (y === null) {
      drawing = false;
      continue;
    }
    path += `${drawing ? "L" : "M"}${x.toFixed(1)} ${y.toFixed(1)}`;
    drawing = true;
  }
  return path;
}

/** 1,234 · 12.3k · 4.56M: at most four figures. */
export function shortNumber(value: number): string {
  if (!Number.isFinite(value)) return "–";
  const size = Math.abs(value);
  if (size >= 1e9) return `${trim(value / 1e9)}G`;
  if (size >= 1e6) return `${trim(value / 1e6)}M`;
  if (size >= 1e4) return `${trim(value / 1e3)}k`;
  if (size >= 100 || Number.isInteger(value)) return Math.round(value).toLocaleString("en-US");
  return trim(value);
}

function trim(value: number): string {
  return String(Number(value.toPrecision(3)));
}

/** Counting stops somewhere: {n: 10000, more: true} is "10,000+". */
export function countText(count: { readonly n: number; readonly more: boolean }): string {
  return `${count.n.toLocaleString("en-US")}${count.more ? "+" : ""}`;
}

const MOST_COUNTED = 10_000;

/** A depth of a queue, which is counted up to 10,001. */
export function depthText(depth: number): string {
  return countText({ n: Math.min(depth, MOST_COUNTED), more: depth > MOST_COUNTED });
}
