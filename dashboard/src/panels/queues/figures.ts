/** What the pages of queues compute. Pure. */

import type { wire } from "@/api";
import type { OverviewMessage } from "@/live";
import { durationText } from "@/ui";

/** As the server lists it. The ratio of a queue that is on no list, for it has nothing, is not known. */
export type Queue = Omit<wire.QueueShown, "retry_ratio"> & { readonly retry_ratio: number | null };
export type Depths = Readonly<Record<string, number>>;
type LiveQueue = OverviewMessage["queues"][number];

/** The sum of some of the depths; where one of them was not counted to its end, neither is the sum. */
export function depthOf(depths: Depths, ...kinds: readonly string[]): number {
  return kinds.reduce((sum, kind) => sum + (depths[kind] ?? 0), 0);
}

/** How a lane's share is told: exactly so many of every ten starts, where it is in tenths. */
export function sharesOf(retryRatio: number): { readonly fresh: string; readonly retry: string } {
  const tenths = retryRatio * 10;
  if (Math.abs(tenths - Math.round(tenths)) < 1e-9) {
    return { fresh: `${10 - Math.round(tenths)} of 10`, retry: `${Math.round(tenths)} of 10` };
  }
  return { fresh: percent(1 - retryRatio), retry: percent(retryRatio) };
}

export function percent(share: number): string {
  return `${Number((100 * share).toPrecision(3))} %`;
}

/** "100 a second", "5 in 30 s, at most 2 at once". */
export function rateText(rate: wire.RateShown): string {
  const units: Readonly<Record<number, string>> = { 1: "a second", 60: "a minute", 3600: "an hour", 86_400: "a day" };
  const per = units[rate.per] ?? `in ${durationText(rate.per)}`;
  const burst = rate.burst === null ? "" : `, at most ${rate.burst.toLocaleString("en-US")} at once`;
  return `${rate.n.toLocaleString("en-US")} ${per}${burst}`;
}

/** Queues as they are listed, with the depths that came since. What has work by now and is not on the list yet is added. */
export function merged(listed: readonly Queue[], live: readonly LiveQueue[] | null, known: readonly string[] = []): readonly Queue[] {
  const newer = new Map((live ?? []).map((queue) => [queue.name, queue]));
  const found = new Map<string, Queue>();
  for (const name of known) found.set(name, idle(name));
  for (const queue of listed) {
    const now = newer.get(queue.name);
    // A queue that the figures do not name any more has nothing left.
    const depths = now?.depths ?? (live === null ? queue.depths : {});
    found.set(queue.name, { ...queue, depths, retry_ratio: now?.retry_ratio ?? queue.retry_ratio });
  }
  for (const queue of newer.values()) {
    if (!listed.some((each) => each.name === queue.name)) {
      found.set(queue.name, { ...idle(queue.name), depths: queue.depths, paused: queue.paused, retry_ratio: queue.retry_ratio });
    }
  }
  return [...found.values()].sort((one, other) => one.name.localeCompare(other.name));
}

/** A queue that has neither tasks nor settings is on no list. */
export function idle(name: string): Queue {
  return { name, paused: false, depths: {}, retry_ratio: null, limit: null, rate: null };
}

/** Whether somebody paused or resumed a queue since the list was read. */
export function isOutdated(listed: readonly Queue[], live: readonly LiveQueue[]): boolean {
  return live.some((now) => {
    const then = listed.find((queue) => queue.name === now.name);
    return then === undefined ? now.paused : then.paused !== now.paused;
  });
}

export interface Sample {
  readonly at: number;
  readonly fresh: number;
  readonly retry: number;
  readonly running: number;
}

/** With one more; what is older than `keep` milliseconds goes. */
export function sampled(before: readonly Sample[], at: number, depths: Depths, keep: number): readonly Sample[] {
  const last = before.at(-1);
  if (last !== undefined && last.at >= at) return before;
  return [...before.filter((each) => each.at > at - keep), sampleOf(at, depths)];
}

function sampleOf(at: number, depths: Depths): Sample {
  return {
    at,
    fresh: depthOf(depths, "primary"),
    retry: depthOf(depths, "retry"),
    running: depthOf(depths, "claimed", "running"),
  };
}

/** What the ledger noted, and from there on what was seen since the page is open. A line takes two. */
export function depthPoints(kept: wire.QueueRates["depths"], seen: readonly Sample[]): readonly Sample[] {
  const first = seen[0]?.at ?? Number.POSITIVE_INFINITY;
  const noted = kept.map(({ at, depths }) => sampleOf(Date.parse(at), depths));
  const points = [...noted.filter((point) => point.at < first), ...seen];
  return points.length > 1 ? points : [];
}

export interface RateForm {
  readonly n: string;
  readonly per: string;
  readonly burst: string;
}

export function rateForm(rate: wire.RateShown | null): RateForm {
  return {
    n: rate === null ? "" : String(rate.n),
    per: rate === null ? "1" : String(rate.per),
    burst: rate?.burst == null ? "" : String(rate.burst),
  };
}

/** What is wrong with a whole number that may be left empty; undefined where nothing is. */
export function wrongNumber(text: string): string | undefined {
  if (text.trim() === "") return undefined;
  return /^\d{1,10}$/.test(text.trim()) && Number(text) >= 1 ? undefined : "Enter a whole number from 1, or nothing for no limit";
}

export function numberOf(text: string): number | null {
  return text.trim() === "" ? null : Number(text);
}

export interface RatePoint {
  readonly at: number;
  readonly completed: number;
  readonly failed: number;
}

/** Below so many seconds of a bucket its rate says nothing. */
const SHORTEST = 5;

/** What ended per second in each bucket, at its middle. The one that is not over is counted by what it has so far. */
export function ratePoints(rates: wire.QueueRates): readonly RatePoint[] {
  const until = Date.parse(rates.until);
  return rates.series.flatMap((bucket) => {
    const begin = Date.parse(bucket.at);
    const seconds = Math.min(rates.bucket, (until - begin) / 1000);
    if (seconds < SHORTEST) return [];
    return [{ at: begin + seconds * 500, completed: bucket.completed / seconds, failed: bucket.failed / seconds }];
  });
}
