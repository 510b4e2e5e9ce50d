/** What the overview computes: rates of what is counted, and what was seen since the page is open. */

import type { wire } from "@/api";
import type { EndedCounts, OverviewMessage } from "@/live";

export const RANGES = ["5m", "1h", "24h", "7d"] as const;
export type Range = (typeof RANGES)[number];
export const RANGE_TITLES: Readonly<Record<Range, string>> = {
  "5m": "Last 5 minutes",
  "1h": "Last hour",
  "24h": "Last 24 hours",
  "7d": "Last 7 days",
};

export function isRange(text: string): text is Range {
  return (RANGES as readonly string[]).includes(text);
}

export const OUTCOMES = ["completed", "failed", "cancelled", "rejected"] as const;
export type Outcome = (typeof OUTCOMES)[number];

/** What was seen at one moment. Times are milliseconds since the epoch, by the ledger's clock. */
export interface Sample {
  readonly at: number;
  /** Ends since the page is open; null at the first look. */
  readonly ended: Readonly<Record<Outcome, number>> | null;
  readonly waiting: number;
  readonly running: number;
}

/** How many ended between two messages: minutes that both know have grown, those that only the later knows are new. */
export function endedBetween(before: OverviewMessage, after: OverviewMessage): Record<Outcome, number> {
  const known = new Map(before.minutes.map((minute) => [minute.at, minute]));
  const sum = { completed: 0, failed: 0, cancelled: 0, rejected: 0 };
  for (const minute of after.minutes) {
    const old: EndedCounts | undefined = known.get(minute.at);
    for (const outcome of OUTCOMES) sum[outcome] += Math.max(0, minute[outcome] - (old?.[outcome] ?? 0));
  }
  return sum;
}

const WAITING = ["primary", "retry"] as const;

/** Tasks that a worker could take now. */
export function waitingOf(queues: readonly { readonly depths: Readonly<Record<string, number>> }[]): number {
  return queues.reduce((sum, queue) => sum + WAITING.reduce((lanes, lane) => lanes + (queue.depths[lane] ?? 0), 0), 0);
}

export function runningOf(states: Readonly<Record<string, number>>): number {
  return (states["running"] ?? 0) + (states["claimed"] ?? 0);
}

export interface Load {
  readonly at: number;
  readonly waiting: number;
  readonly running: number;
}

/** How much waited and ran: what the ledger noted in the range, and from there on what was seen since the page is open. */
export function loadPoints(kept: wire.OverviewShown["depths"], samples: readonly Sample[]): readonly Load[] {
  const firstLive = samples[0]?.at ?? Number.POSITIVE_INFINITY;
  const noted = kept.map(({ at, depths }) => ({
    at: Date.parse(at),
    waiting: waitingOf([{ depths }]),
    running: runningOf(depths),
  }));
  return [...noted.filter((point) => point.at < firstLive), ...samples];
}

/** A pause longer than this is a gap: two messages come a second apart, or a few. */
const LONGEST_STEP = 15_000;
/** What is older than the shortest range is never drawn. */
const KEPT = 5 * 60_000;

/** One more sample behind those that are there; the oldest are forgotten. */
export function remember(samples: readonly Sample[], before: OverviewMessage | null, message: OverviewMessage): readonly Sample[] {
  const at = Date.parse(message.at);
  const last = samples.at(-1);
  if (last !== undefined && at <= last.at) return samples;
  const follows = before !== null && last !== undefined && at - last.at <= LONGEST_STEP;
  const sample: Sample = {
    at,
    ended: follows ? endedBetween(before, message) : null,
    waiting: waitingOf(message.queues),
    running: runningOf(message.states),
  };
  return [...samples.filter((each) => each.at > at - KEPT), sample];
}

/** Seconds over which a rate is taken: what ends in bursts is not shown as spikes. */
const WINDOW = 5_000;

/** Ends of one kind per second, at each sample; null where too little is known. */
export function rates(samples: readonly Sample[], outcome: Outcome): readonly (number | null)[] {
  return samples.map((sample, place) => {
    if (sample.ended === null) return null;
    let count = 0;
    let from = sample.at;
    for (let at = place; at > 0; at -= 1) {
      const here = samples[at];
      const before = samples[at - 1];
      if (here?.ended == null || before === undefined || sample.at - before.at > WINDOW + 1500) break;
      count += here.ended[outcome];
      from = before.at;
    }
    return from === sample.at ? null : (count * 1000) / (sample.at - from);
  });
}

export interface Lines {
  readonly times: readonly number[];
  readonly values: Readonly<Record<Outcome, readonly (number | null)[]>>;
}

type Point = wire.OverviewShown["finished"]["series"][number];

/** Below so many seconds of a bucket its rate says nothing. */
const SHORTEST = 5;

/**
 * Ends per second: of buckets at their middle, and of what was seen since the page is open, where the range is short
 * enough for it. The bucket that is not over is counted by what it has so far.
 */
export function finishedLines(shown: wire.OverviewShown, samples: readonly Sample[]): Lines {
  const live = shown.range === "5m" ? samples : [];
  const until = Date.parse(shown.until);
  const firstLive = live.find((sample) => sample.ended !== null)?.at ?? Number.POSITIVE_INFINITY;
  const times: number[] = [];
  const values: Record<Outcome, (number | null)[]> = { completed: [], failed: [], cancelled: [], rejected: [] };
  for (const point of shown.finished.series) {
    const seconds = secondsOf(point, shown.bucket, until);
    const middle = Date.parse(point.at) + (seconds * 1000) / 2;
    if (seconds < SHORTEST || middle >= firstLive) continue;
    times.push(middle);
    for (const outcome of OUTCOMES) values[outcome].push(point[outcome] / seconds);
  }
  for (const sample of live) if (sample.at >= firstLive) times.push(sample.at);
  for (const outcome of OUTCOMES) {
    const found = rates(live, outcome);
    live.forEach((sample, at) => {
      if (sample.at >= firstLive) values[outcome].push(found[at] ?? null);
    });
  }
  return { times, values };
}

function secondsOf(point: Point, bucket: number, until: number): number {
  return Math.min(bucket, (until - Date.parse(point.at)) / 1000);
}

/**
 * The answer with what has happened since: the live minutes take the place of theirs, and new ones are put behind. Only where
 * a bucket is a minute.
 */
export function withMinutes(shown: wire.OverviewShown, message: OverviewMessage | undefined): wire.OverviewShown {
  if (message === undefined || shown.bucket !== 60 || shown.whose !== "all") return shown;
  if (Date.parse(message.at) <= Date.parse(shown.until)) return shown;
  const minutes = new Map(message.minutes.map((minute) => [Date.parse(minute.at), minute]));
  const known = shown.finished.series.map((point) => {
    const fresh = minutes.get(Date.parse(point.at));
    minutes.delete(Date.parse(point.at));
    return fresh === undefined ? point : { ...point, ...outcomesOf(fresh) };
  });
  const newest = Math.max(...shown.finished.series.map((point) => Date.parse(point.at)));
  const added = [...minutes.entries()]
    .filter(([at]) => at > newest)
    .map(([, minute]): Point => ({ at: minute.at, ...outcomesOf(minute) }));
  const series = [...known, ...added].slice(added.length);
  return { ...shown, until: message.at, finished: { ...shown.finished, series } };
}

function outcomesOf(counts: EndedCounts): Record<Outcome, number> {
  return { completed: counts.completed, failed: counts.failed, cancelled: counts.cancelled, rejected: counts.rejected };
}

/** The part of what ended that failed, from 0 to 1; null when nothing ended. */
export function failureShare(totals: Readonly<Record<Outcome, number>>): number | null {
  const ended = totals.completed + totals.failed;
  return ended === 0 ? null : totals.failed / ended;
}

export function percentText(share: number | null): string {
  if (share === null) return "–";
  if (share === 0) return "0 %";
  return share < 0.001 ? "< 0.1 %" : `${Number((share * 100).toPrecision(share < 0.1 ? 2 : 3))} %`;
}
