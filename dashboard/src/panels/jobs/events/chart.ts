/** Events of a job as lines over time: at most so many points as can be told apart. */

export interface Counted {
  readonly at: string;
  readonly completed: number;
  readonly failed: number;
  readonly cancelled: number;
}

export interface ProgressChart {
  readonly times: readonly number[];
  readonly completed: readonly number[];
  readonly failed: readonly number[];
  readonly cancelled: readonly number[];
}

/** Points in the same part of time are one: the last. Times rise, even where clocks did not. */
export function chartOf(events: readonly Counted[], most = 300): ProgressChart {
  const sorted = events
    .map((event) => ({ ...event, time: Date.parse(event.at) }))
    .filter((event) => !Number.isNaN(event.time))
    .sort((one, other) => one.time - other.time);
  const first = sorted[0]?.time ?? 0;
  const last = sorted.at(-1)?.time ?? 0;
  const part = Math.max(1, (last - first) / most);
  const points = new Map<number, (typeof sorted)[number]>();
  for (const event of sorted) points.set(Math.floor((event.time - first) / part), event);
  const kept = [...points.values()];
  return {
    times: kept.map((event) => event.time),
    completed: kept.map((event) => event.completed),
    failed: kept.map((event) => event.failed),
    cancelled: kept.map((event) => event.cancelled),
  };
}
