import { expect, it } from "vitest";

import type { wire } from "@/api";

import {
  depthOf,
  depthPoints,
  isOutdated,
  merged,
  numberOf,
  percent,
  rateForm,
  ratePoints,
  rateText,
  sampled,
  sharesOf,
  wrongNumber,
  type Queue,
} from "./figures";

const mail: Queue = { name: "mail", paused: false, depths: { primary: 12, retry: 3 }, retry_ratio: 0.3, limit: 5, rate: null };

it("says shares in tenths, where they are tenths", () => {
  expect(sharesOf(0.3)).toEqual({ fresh: "7 of 10", retry: "3 of 10" });
  expect(sharesOf(0.1)).toEqual({ fresh: "9 of 10", retry: "1 of 10" });
  expect(sharesOf(0.25)).toEqual({ fresh: "75 %", retry: "25 %" });
  expect(percent(0.0592)).toBe("5.92 %");
});

it("says rates as people do", () => {
  expect(rateText({ n: 1000, per: 1, burst: null })).toBe("1,000 a second");
  expect(rateText({ n: 5, per: 90, burst: 2 })).toBe("5 in 1 min 30 s, at most 2 at once");
});

it("sums depths, and takes what is left out as none", () => {
  expect(depthOf({ claimed: 1, running: 4 }, "claimed", "running", "retry")).toBe(5);
});

it("takes newer depths, and keeps what only the list knows", () => {
  const [queue] = merged([mail], [{ name: "mail", paused: false, depths: { primary: 1 }, retry_ratio: 0.2 }]);
  expect(queue).toEqual({ ...mail, depths: { primary: 1 }, retry_ratio: 0.2 });
});

it("takes a queue that newer figures do not name as empty", () => {
  expect(merged([mail], [])[0]?.depths).toEqual({});
  expect(merged([mail], null)[0]?.depths).toEqual(mail.depths);
});

it("adds queues that came since, and those of the code", () => {
  const found = merged([mail], [{ name: "slow", paused: true, depths: { primary: 1 }, retry_ratio: 0.3 }], ["default", "mail"]);
  expect(found.map((queue) => [queue.name, queue.paused, queue.limit])).toEqual([
    ["default", false, null],
    ["mail", false, 5],
    ["slow", true, null],
  ]);
});

it("sees that somebody paused a queue meanwhile", () => {
  const now = { name: "mail", paused: true, depths: {}, retry_ratio: 0.3 };
  expect(isOutdated([mail], [now])).toBe(true);
  expect(isOutdated([{ ...mail, paused: true }], [now])).toBe(false);
  expect(isOutdated([mail], [{ ...now, name: "other" }])).toBe(true);
  expect(isOutdated([mail], [{ ...now, name: "other", paused: false }])).toBe(false);
});

it("keeps samples for a time, and none twice", () => {
  const one = sampled([], 1000, { primary: 2, claimed: 1, running: 1 }, 5000);
  expect(one).toEqual([{ at: 1000, fresh: 2, retry: 0, running: 2 }]);
  expect(sampled(one, 1000, { primary: 9 }, 5000)).toBe(one);
  expect(sampled(one, 7000, { primary: 9 }, 5000).map((sample) => sample.at)).toEqual([7000]);
});

it("draws the depths that were noted, until there are some that were seen", () => {
  const kept = ["08:00", "08:01"].map((time) => ({ at: `2026-05-01T${time}:00Z`, depths: { primary: 4, claimed: 1, running: 2 } }));
  const [first, second] = kept.map(({ at }) => ({ at: Date.parse(at), fresh: 4, retry: 0, running: 3 }));
  expect(depthPoints(kept, [])).toEqual([first, second]);
  const seen = [30, 90].map((seconds) => ({ at: Date.parse("2026-05-01T08:00:00Z") + seconds * 1000, fresh: 9, retry: 1, running: 0 }));
  expect(depthPoints(kept, seen)).toEqual([first, ...seen]);
  expect(depthPoints(kept.slice(1), [])).toEqual([]);
});

it("draws what ended per second, and the bucket that is not over by what it has so far", () => {
  const nothing = { failed: 0, cancelled: 0, rejected: 0 };
  const rates: wire.QueueRates = {
    queue: "mail",
    range: "1h",
    since: "2026-05-01T08:00:00Z",
    until: "2026-05-01T08:01:30Z",
    bucket: 60,
    whose: "all",
    complete: true,
    series: [
      { at: "2026-05-01T08:00:00Z", ...nothing, completed: 120, failed: 30 },
      { at: "2026-05-01T08:01:00Z", ...nothing, completed: 60 },
    ],
    totals: { ...nothing, completed: 180, failed: 30 },
    per_second: 2,
    depths: [],
  };
  expect(ratePoints(rates)).toEqual([
    { at: Date.parse("2026-05-01T08:00:30Z"), completed: 2, failed: 0.5 },
    { at: Date.parse("2026-05-01T08:01:15Z"), completed: 2, failed: 0 },
  ]);
  // Two seconds of a bucket would say anything.
  expect(ratePoints({ ...rates, until: "2026-05-01T08:01:02Z" })).toHaveLength(1);
});

it("reads numbers that may be left out", () => {
  expect([wrongNumber(""), wrongNumber(" 5 "), numberOf(""), numberOf("5")]).toEqual([undefined, undefined, null, 5]);
  for (const text of ["0", "-1", "1.5", "many", "12345678901"]) expect(wrongNumber(text)).toMatch(/whole number/);
  expect(rateForm(null)).toEqual({ n: "", per: "1", burst: "" });
  expect(rateForm({ n: 5, per: 60, burst: 2 })).toEqual({ n: "5", per: "60", burst: "2" });
});
