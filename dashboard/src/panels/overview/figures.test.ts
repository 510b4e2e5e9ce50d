import { describe, expect, it } from "vitest";

import type { wire } from "@/api";
import type { OverviewMessage } from "@/live";

import {
  endedBetween,
  failureShare,
  finishedLines,
  loadPoints,
  percentText,
  rates,
  remember,
  waitingOf,
  withMinutes,
  type Sample,
} from "./figures";

const START = Date.parse("2026-05-01T08:00:00Z");
const iso = (seconds: number): string => new Date(START + seconds * 1000).toISOString();
const minute = (at: number, completed: number, failed = 0) => ({ at: iso(at), completed, failed, cancelled: 0, rejected: 0 });

function message(at: number, ...minutes: OverviewMessage["minutes"]): OverviewMessage {
  return {
    type: "overview",
    at: iso(at),
    minutes,
    states: { running: 2, claimed: 1, pending: 9 },
    queues: [{ name: "mail", paused: false, depths: { primary: 4, retry: 1, scheduled: 50 }, retry_ratio: 0.3 }],
    workers: { alive: 1, silent: 0, stopping: 0, hosts: 1 },
  };
}

function shown(range: "5m" | "1h", until: number, ...series: ReturnType<typeof minute>[]): wire.OverviewShown {
  return {
    range,
    since: iso(0),
    until: iso(until),
    bucket: 60,
    whose: "all",
    finished: { series, totals: minute(0, 0), complete: true, queues: [], names: [] },
  } as unknown as wire.OverviewShown;
}

function watched(...messages: OverviewMessage[]): readonly Sample[] {
  let samples: readonly Sample[] = [];
  let before: OverviewMessage | null = null;
  for (const each of messages) {
    samples = remember(samples, before, each);
    before = each;
  }
  return samples;
}

describe("how much waits and runs", () => {
  const kept = [-120, -60, 0].map((at, n) => ({ at: iso(at), depths: { primary: n, retry: 10, scheduled: 99, running: 2 * n, claimed: 1 } }));

  it("is what the ledger noted, until there is something that was seen", () => {
    expect(loadPoints(kept, []).map(({ waiting, running }) => [waiting, running])).toEqual([[10, 1], [11, 3], [12, 5]]);
    const live = watched(message(-30), message(-28));
    expect(loadPoints(kept, live).map((point) => (point.at - START) / 1000)).toEqual([-120, -60, -30, -28]);
    expect(loadPoints([], live)).toEqual(live);
  });
});

describe("what ended between two looks", () => {
  it("is what a minute has grown by, and what a new one holds", () => {
    const before = message(59, minute(-60, 100), minute(0, 40, 2));
    const after = message(61, minute(0, 45, 3), minute(60, 7));
    expect(endedBetween(before, after)).toEqual({ completed: 12, failed: 1, cancelled: 0, rejected: 0 });
  });

  it("is never less than nothing: what was pruned did not come back", () => {
    expect(endedBetween(message(1, minute(0, 9)), message(2, minute(0, 4))).completed).toBe(0);
  });
});

describe("samples", () => {
  it("hold what waits in lanes and what runs", () => {
    expect(watched(message(1, minute(0, 1)))).toEqual([{ at: START + 1000, ended: null, waiting: 5, running: 3 }]);
    expect(waitingOf([])).toBe(0);
  });

  it("do not count over a gap, nor the same moment twice", () => {
    const samples = watched(message(1, minute(0, 1)), message(1, minute(0, 9)), message(30, minute(0, 300)));
    expect(samples.map((each) => each.ended)).toEqual([null, null]);
  });

  it("are forgotten when they are too old to be drawn", () => {
    const samples = watched(message(0, minute(0, 0)), message(10, minute(0, 1)), message(305, minute(300, 1)));
    expect(samples.map((each) => (each.at - START) / 1000)).toEqual([10, 305]);
  });
});

describe("rates", () => {
  it("are ends per second over the last seconds", () => {
    const messages = [0, 1, 2, 3, 4, 5, 6, 7, 8].map((at) => message(at, minute(0, at * 10)));
    const found = rates(watched(...messages), "completed");
    expect(found[0]).toBeNull();
    expect(found.slice(1)).toEqual(Array.from({ length: 8 }, () => 10));
  });

  it("smooth a burst over five seconds and forget it then", () => {
    const counts = [0, 60, 60, 60, 60, 60, 60, 60, 60, 60];
    const found = rates(watched(...counts.map((count, at) => message(at, minute(0, count)))), "completed");
    expect(found[1]).toBe(60);
    expect(found[6]).toBe(10);
    expect(found[8]).toBe(0);
  });

  it("are not known right after a gap", () => {
    const found = rates(watched(message(0, minute(0, 0)), message(1, minute(0, 5)), message(40, minute(0, 99)), message(41, minute(0, 100))), "completed");
    expect(found).toEqual([null, 5, null, 1]);
  });
});

describe("the lines of what ended", () => {
  it("are counts per second at the middle of each bucket, and of the last one by what it has so far", () => {
    const { times, values } = finishedLines(shown("1h", 80, minute(0, 120, 6), minute(60, 40)), []);
    expect(times.map((time) => (time - START) / 1000)).toEqual([30, 70]);
    expect(values.completed).toEqual([2, 2]);
    expect(values.failed).toEqual([0.1, 0]);
  });

  it("leave out a bucket that has only begun", () => {
    expect(finishedLines(shown("1h", 62, minute(0, 60), minute(60, 2)), []).times).toHaveLength(1);
  });

  it("go on second by second from where the page was opened, in the shortest range alone", () => {
    const samples = watched(message(70, minute(60, 10)), message(71, minute(60, 12)), message(72, minute(60, 14)));
    const near = finishedLines(shown("5m", 72, minute(0, 60), minute(60, 14)), samples);
    expect(near.times.map((time) => (time - START) / 1000)).toEqual([30, 66, 71, 72]);
    expect(near.values.completed).toEqual([1, 14 / 12, 2, 2]);
    expect(finishedLines(shown("1h", 72, minute(0, 60), minute(60, 14)), samples).times).toHaveLength(2);
  });
});

describe("an answer with what happened since", () => {
  const answer = shown("1h", 70, minute(0, 60), minute(60, 5));

  it("has the minutes as they are now, and as many as before", () => {
    const { finished, until } = withMinutes(answer, message(125, minute(60, 33, 1), minute(120, 2)));
    expect(finished.series.map((point) => [point.at, point.completed])).toEqual([
      [iso(60), 33],
      [iso(120), 2],
    ]);
    expect(until).toBe(iso(125));
  });

  it("stays as it is without news, and where buckets are longer or the figures are of others", () => {
    expect(withMinutes(answer, undefined)).toBe(answer);
    expect(withMinutes(answer, message(60, minute(60, 1)))).toBe(answer);
    const own = { ...answer, whose: "own" } as wire.OverviewShown;
    expect(withMinutes(own, message(125, minute(60, 33)))).toBe(own);
    const day = { ...answer, bucket: 900 };
    expect(withMinutes(day, message(125, minute(60, 33)))).toBe(day);
  });
});

it.each([
  [0, 0, "–"],
  [10, 0, "0 %"],
  [99_999, 1, "< 0.1 %"],
  [97, 3, "3 %"],
  [1, 2, "66.7 %"],
])("says which part of %d good and %d bad failed: %s", (completed, failed, text) => {
  expect(percentText(failureShare({ completed, failed, cancelled: 5, rejected: 0 }))).toBe(text);
});
