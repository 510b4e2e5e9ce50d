import { expect, it } from "vitest";

import { ProblemError, type wire } from "@/api";

import { inUnits, instantOf, localInput, readCadence, wordsOf } from "./cadence";
import { changeOf, emptyForm, formOf, newSchedule, templateOf, unsendable, wrongsOf, type Field } from "./form";
import { placed } from "./placing";

const nightly: wire.ScheduleShown = {
  name: "nightly",
  task: "tasks.report",
  when: "At 02:30 every day (Europe/Berlin)",
  cadence: { kind: "cron", expression: "30 2 * * *", tz: "Europe/Berlin" },
  catch_up: "coalesce",
  grace: 60,
  overlap: "skip",
  jitter: 0,
  paused: false,
  declared_by: null,
  revision: 1,
  problem: null,
  next_at: null,
  upcoming: [],
  last_runs: [],
  arguments: { region: "north" },
  queue: "reports",
  created_at: "2026-05-01T08:00:00Z",
  changed_at: "2026-05-01T08:00:00Z",
};

it("reads cadences, and none that it does not know", () => {
  expect(readCadence({ kind: "every", seconds: 60, anchor: "…" })).toEqual({ kind: "every", seconds: 60 });
  expect(readCadence({ kind: "once", at: "2030-01-01T00:00:00+00:00" })).toEqual({ kind: "once", at: "2030-01-01T00:00:00+00:00" });
  for (const stored of [null, "cron", { kind: "moon" }, { kind: "cron", expression: "* * * * *" }]) expect(readCadence(stored)).toBeNull();
});

it("says the words without the zone", () => {
  expect(wordsOf(nightly.when, readCadence(nightly.cadence))).toBe("At 02:30 every day");
  expect(wordsOf("Every 10 minutes", { kind: "every", seconds: 600 })).toBe("Every 10 minutes");
});

it("shows intervals in the largest unit that holds them", () => {
  expect(inUnits(86_400)).toEqual({ count: "1", unit: "86400" });
  expect(inUnits(5400)).toEqual({ count: "90", unit: "60" });
  expect(inUnits(1.5)).toEqual({ count: "1.5", unit: "1" });
});

it("goes from an instant to the viewer's clock and back", () => {
  const there = localInput("2026-07-01T10:30:00Z");
  expect(there).toMatch(/^2026-07-0\dT\d\d:\d\d$/);
  expect(instantOf(there)).toBe("2026-07-01T10:30:00.000Z");
  expect(instantOf("")).toBeNull();
  expect(localInput("nonsense")).toBe("");
});

it("sends what makes a schedule, and no cadence but one", () => {
  const form = { ...emptyForm("Asia/Tokyo"), name: " east ", task: "tasks.report", kwargs: '{"region": "east"}' };
  expect(newSchedule(form)).toEqual({
    name: "east",
    task: "tasks.report",
    kwargs: { region: "east" },
    cron: "0 9 * * 1-5",
    tz: "Asia/Tokyo",
    catch_up: "coalesce",
    grace: 60,
    overlap: "skip",
    jitter: 0,
    paused: false,
  });
  const hourly = newSchedule({ ...form, kind: "every", every: "1.5", unit: "3600", queue: "slow", priority: "-3" });
  expect(hourly).toMatchObject({ every: 5400, queue: "slow", priority: -3 });
  expect(hourly).not.toHaveProperty("cron");
  expect(hourly).not.toHaveProperty("tz");
});

it("changes nothing that was not touched", () => {
  const before = formOf(nightly, "UTC");
  expect(changeOf(before, before)).toBeNull();
  expect(changeOf(before, { ...before, kwargs: '{"region":"north"}' })).toBeNull();
  expect(changeOf(before, { ...before, cron: "0 3 * * *" })).toEqual({ cron: "0 3 * * *", tz: "Europe/Berlin" });
  expect(changeOf(before, { ...before, jitter: "30", overlap: "allow" })).toEqual({ jitter: 30, overlap: "allow" });
  expect(changeOf(before, { ...before, kwargs: '{"region": "south"}' })).toEqual({ task: "tasks.report", kwargs: { region: "south" } });
});

it("opens a form with what is stored", () => {
  expect(formOf({ ...nightly, cadence: { kind: "every", seconds: 600 } }, "UTC")).toMatchObject({ kind: "every", every: "10", unit: "60" });
  expect(formOf({ ...nightly, cadence: { kind: "once", at: "2030-01-01T00:00:00Z" } }, "UTC").kind).toBe("once");
});

it("sees before it is sent what cannot be right", () => {
  const form = { ...emptyForm("UTC"), kwargs: "[1]", cron: " ", grace: "soon", priority: "high" };
  expect(Object.keys(wrongsOf(form)).sort()).toEqual(["cron", "grace", "kwargs", "name", "priority", "task"]);
  expect(wrongsOf({ ...form, kind: "every", every: "0" })).toHaveProperty("every");
  expect(wrongsOf({ ...form, kind: "once" })).toHaveProperty("at");
  expect(wrongsOf({ ...emptyForm("UTC"), name: "x", task: "t" })).toEqual({});
});

it("knows arguments that are not what was shown of them", () => {
  expect(unsendable('{"a": [{"b": "[redacted]"}]}')).toMatch(/anew/);
  expect(unsendable('{"dsn": "postgresql://app:[redacted]@db/x"}')).toMatch(/anew/);
  expect(unsendable(formOf({ ...nightly, arguments: JSON.parse('{"account": 9007199254740993}') as object }, "UTC").kwargs)).toMatch(/too large/);
  expect(unsendable('{"a": "redacted", "b": 9007199254740991}')).toBeUndefined();
  expect(unsendable("no JSON yet")).toBeUndefined();
});

it("begins arguments with what the task asks for", () => {
  const schema = {
    properties: { region: { type: "string" }, days: { type: "integer" }, rest: { anyOf: [] } },
    required: ["region", "rest"],
  };
  expect(JSON.parse(templateOf(schema))).toEqual({ region: "", rest: null });
  expect(templateOf(undefined)).toBe("{}");
});

it("puts what the server tells in words beside the field that it is about", () => {
  const all = new Set<Field>(["name", "task", "kwargs", "cron", "tz", "every", "at", "overlap"]);
  const refusals: readonly (readonly [number, string, Field])[] = [
    [422, "the hour field of the cron expression '0 99 * * *' has '99'; it takes 0 to 23", "cron"],
    [422, "unknown time zone 'Berlin': did you mean Europe/Berlin?", "tz"],
    [422, "task tasks.report: 'region' is missing", "kwargs"],
    [422, "no task 'tasks.nope' is defined on this app", "task"],
    [409, "there is a schedule weekly already; change it", "name"],
    [422, "Every.interval must be at least one second", "every"],
    [422, "schedule x: 2020-01-01 00:00:00+00:00 is over, so it would never fire", "at"],
    [422, "catch_up='all' asks for every missed tick and overlap='skip' drops all", "overlap"],
  ];
  for (const [status, detail, field] of refusals) {
    const { fields, rest } = placed(new ProblemError("Refused", status, detail), all);
    expect([detail, fields, rest]).toEqual([detail, { [field]: detail }, null]);
  }
});

it("keeps what no field on the screen is to blame for", () => {
  const error = new ProblemError("Forbidden", 403, "task tasks.refund: waits for approval");
  expect(placed(error, new Set<Field>(["kwargs"])).rest).not.toBeNull();
  const elsewhere = new ProblemError("Refused", 422, "unknown time zone 'Berlin'");
  expect(placed(elsewhere, new Set<Field>(["every"])).rest?.detail).toBe("unknown time zone 'Berlin'");
});
