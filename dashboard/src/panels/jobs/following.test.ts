import { QueryClient } from "@tanstack/react-query";
import { expect, it } from "vitest";

import { readIds, readKwargs } from "./adding";
import { chartOf } from "./events/chart";
import { listed, patched } from "./following";
import { pauseAfter, pollAfter } from "./pace";
import { job } from "./testing";

it("reads arguments as an object and nothing else", () => {
  expect(readKwargs('{"n": 3}')).toEqual({ value: { n: 3 } });
  expect(readKwargs("  ")).toEqual({ value: {} });
  expect(readKwargs('{"n": 9007199254740993}').error).toMatch(/too large/);
  expect(readKwargs("[1]").error).toMatch(/object/);
  expect(readKwargs("{n: 3}").error).toMatch(/No JSON/);
});

it("reads ids however they are put apart", () => {
  expect(readIds("17, 18 #19;17")).toEqual({ value: [17, 18, 19] });
  expect(readIds("")).toEqual({ value: [] });
  expect(readIds("17 x").error).toBe("x is no id of a task");
});

it("asks less often for what takes long", () => {
  expect(pauseAfter(20)).toBe(1000);
  expect(pauseAfter(1000)).toBe(9000);
  expect(pauseAfter(1e9)).toBe(60_000);
  expect(pollAfter(0)).toBe(3000);
});

it("puts a message into what is known of a job, but not an old one", () => {
  const message = (completed: number, status: "running" | "completed" = "running", total = 10) => ({
    type: "job_status_update" as const,
    status,
    seq: 3,
    data: { job: "7", total, completed, failed: 1, cancelled: 0, at: "2026-05-01T08:00:09Z" },
  });
  expect(patched(job(), message(8))).toMatchObject({ completed: 8, open: 1, running: 1, state: "running" });
  expect(patched(job(), message(9, "completed"))).toMatchObject({ completed: 9, open: 0, running: 0, state: "completed" });
  const over = job({ state: "completed", completed: 9, running: 0, open: 0 });
  expect(patched(over, message(4))).toBe(over);
  expect(patched(over, message(4, "running", 5))).toBe(over);
});

it("draws events as lines of at most so many points that rise in time", () => {
  const events = Array.from({ length: 2000 }, (_, n) => ({
    at: new Date(Date.parse("2026-05-01T08:00:00Z") + n * 10).toISOString(),
    completed: n,
    failed: 0,
    cancelled: 0,
  }));
  const chart = chartOf(events, 100);
  expect(chart.times.length).toBeLessThanOrEqual(101);
  expect(chart.times.every((time, at) => at === 0 || time > (chart.times[at - 1] ?? 0))).toBe(true);
  expect(chart.completed.at(-1)).toBe(1999);
  expect(chartOf([]).times).toEqual([]);
});

it("knows of a job what a list said of it", () => {
  const queries = new QueryClient();
  expect(listed(queries, 7)).toBeUndefined();
  queries.setQueryData(["jobs", { states: [] }], { pages: [{ items: [job({ id: 3 })], next: "c" }, { items: [job()], next: null }] });
  expect(listed(queries, 7)?.name).toBe("nightly");
  expect(listed(queries, 8)).toBeUndefined();
});
