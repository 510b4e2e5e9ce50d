import { describe, expect, it } from "vitest";

import { percentOf, progressText, segmentsOf, waitingOf, type JobCounts } from "./progress";

const job: JobCounts = { total: 100, completed: 60, failed: 3, cancelled: 7, running: 10 };

describe("segments of a job's bar", () => {
  it("are what has ended and what runs; the rest waits", () => {
    expect(segmentsOf(job).map((part) => [part.label, part.value])).toEqual([
      ["completed", 60],
      ["failed", 3],
      ["cancelled", 7],
      ["running", 10],
    ]);
    expect(waitingOf(job)).toBe(20);
    expect(progressText(job)).toBe("70 of 100");
  });

  it("never are more than the whole, whatever the counts say", () => {
    const parts = segmentsOf({ total: 10, completed: 8, failed: 4, cancelled: 0, running: 5 });
    expect(parts.reduce((sum, part) => sum + part.value, 0)).toBe(10);
    expect(parts.map((part) => part.label)).toEqual(["completed", "failed"]);
    expect(segmentsOf({ total: 0, completed: 0, failed: 0, cancelled: 0, running: 0 })).toEqual([]);
  });

  it("say 100 % only at the end and 0 % only at the beginning", () => {
    expect(percentOf({ ...job, total: 100_000, completed: 99_999, failed: 0, cancelled: 0 })).toBe(99);
    expect(percentOf({ ...job, total: 100_000, completed: 1, failed: 0, cancelled: 0 })).toBe(1);
    expect(percentOf({ ...job, total: 3, completed: 1, failed: 1, cancelled: 1 })).toBe(100);
    expect(percentOf({ ...job, total: 0 })).toBe(0);
  });
});
