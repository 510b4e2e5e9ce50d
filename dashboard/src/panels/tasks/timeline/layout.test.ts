import { describe, expect, it } from "vitest";

import type { wire } from "@/api";

import { axisOf, rowsOf, secondsOf, type TimelineTask } from "./layout";

const START = Date.parse("2026-05-01T08:00:00Z");
const iso = (seconds: number): string => new Date(START + seconds * 1000).toISOString();
const now = (seconds: number): number => START + seconds * 1000;

function attempt(claim: number, times: readonly [number | null, number | null, number | null], more: Partial<wire.AttemptShown> = {}): wire.AttemptShown {
  const [claimed, started, finished] = times.map((time) => (time === null ? null : iso(time)));
  return {
    claim_no: claim,
    run_no: 1,
    attempt: claim,
    state: finished === null ? "running" : "failed",
    charged: true,
    worker: "w1",
    executor: "coroutine",
    claimed_at: claimed ?? null,
    started_at: started ?? null,
    finished_at: finished ?? null,
    error: null,
    traceback: null,
    exit_code: null,
    late_state: null,
    late_at: null,
    log_ref: "",
    ...more,
  };
}

function task(more: Partial<TimelineTask>): TimelineTask {
  return {
    state: "completed",
    run_no: 1,
    created_at: iso(0),
    enqueued_at: iso(0),
    eligible_at: iso(0),
    claimed_at: null,
    finished_at: null,
    attempts: [],
    more_attempts: false,
    ...more,
  };
}

/** By row: kind, from and to in seconds, * for what goes on. */
function bars(given: TimelineTask, at = 100): string[][] {
  return rowsOf(given, now(at)).map((row) =>
    row.segments.map((each) => `${each.kind} ${(each.from - START) / 1000}–${(each.to - START) / 1000}${each.isOpen ? "*" : ""}`),
  );
}

describe("rows", () => {
  it("does not know since when the first one waited where others were before it", () => {
    const cut = task({ run_no: 2, attempts: [attempt(7, [31, 31, 32], { run_no: 2 })], more_attempts: true, finished_at: iso(32) });
    expect(bars(cut)[0]?.some((each) => each.startsWith("waiting"))).toBe(false);
    expect(bars({ ...cut, more_attempts: false })[0]?.some((each) => each.startsWith("waiting"))).toBe(true);
  });

  it("are one for each execution: waiting, claimed, running", () => {
    const given = task({ attempts: [attempt(1, [2, 3, 5]), attempt(2, [9, 9.5, 12], { state: "succeeded" })], finished_at: iso(12) });
    expect(bars(given)).toEqual([
      ["waiting 0–2", "claimed 2–3", "running 3–5"],
      ["waiting 5–9", "claimed 9–9.5", "running 9.5–12"],
    ]);
    const [first] = rowsOf(given, now(100));
    expect(first && secondsOf(first, "running")).toBe(2);
    expect(first && secondsOf(first, "due")).toBeNull();
  });

  it("go on to the present for what runs", () => {
    expect(bars(task({ state: "running", claimed_at: iso(2), attempts: [attempt(1, [2, 3, null])] }), 10)).toEqual([
      ["waiting 0–2", "claimed 2–3", "running 3–10*"],
    ]);
  });

  it("show what was taken and has not started", () => {
    expect(bars(task({ state: "claimed", claimed_at: iso(4) }), 10)).toEqual([["waiting 0–4", "claimed 4–10*"]]);
  });

  it("show a wait that goes on, and when it is due", () => {
    expect(bars(task({ state: "pending" }), 10)).toEqual([["waiting 0–10*"]]);
    expect(bars(task({ state: "pending", eligible_at: iso(30), attempts: [attempt(1, [2, 3, 5])] }), 10)).toEqual([
      ["waiting 0–2", "claimed 2–3", "running 3–5"],
      ["waiting 5–10*", "due 10–30*"],
    ]);
    expect(bars(task({ state: "blocked", eligible_at: iso(30) }), 10)).toEqual([["waiting 0–10*"]]);
  });

  it("begin a run by hand when it was enqueued again", () => {
    const given = task({
      state: "pending",
      run_no: 3,
      enqueued_at: iso(60),
      attempts: [attempt(1, [1, 1, 2]), attempt(2, [31, 31, 32], { run_no: 2 }), attempt(3, [61, 61, 62], { run_no: 3 })],
    });
    expect(bars(given, 70)).toEqual([
      ["waiting 0–1", "claimed 1–1", "running 1–2"],
      // When the second run began, nobody knows any more.
      ["claimed 31–31", "running 31–32"],
      ["waiting 60–61", "claimed 61–61", "running 61–62"],
      ["waiting 62–70*"],
    ]);
    expect(bars({ ...given, attempts: given.attempts.slice(0, 2) }, 70).at(-1)).toEqual(["waiting 60–70*"]);
  });

  it("show the wait of what ended without being taken", () => {
    expect(bars(task({ state: "cancelled", finished_at: iso(8) }))).toEqual([["waiting 0–8"]]);
    expect(bars(task({ state: "cancelled", finished_at: iso(8), attempts: [attempt(1, [1, 2, 8])] }))).toHaveLength(1);
  });

  it("never run backwards", () => {
    expect(bars(task({ attempts: [attempt(1, [2, 1.5, 1])], finished_at: iso(1) }))[0]).toEqual([
      "waiting 0–2",
      "claimed 2–2",
      "running 1.5–1.5",
    ]);
  });

  it("are few for executions without times", () => {
    expect(bars(task({ attempts: [attempt(1, [null, null, null], { state: "refused" })], finished_at: iso(1) }))).toEqual([[]]);
  });
});

describe("the axis", () => {
  it("is linear where work takes its part", () => {
    const axis = axisOf(rowsOf(task({ attempts: [attempt(1, [4, 4, 8])], finished_at: iso(8) }), now(8)));
    expect([axis.place(now(0)), axis.place(now(4)), axis.place(now(6)), axis.place(now(8))]).toEqual([0, 0.5, 0.75, 1]);
    expect(axis.breaks).toEqual([]);
  });

  it("cuts long waits short, and says which", () => {
    const given = task({ attempts: [attempt(1, [1000, 1000, 1001]), attempt(2, [1001.5, 1001.5, 1002.5])], finished_at: iso(1002.5) });
    const axis = axisOf(rowsOf(given, now(2000)));
    // Two seconds of work, and each of the two waits at most one: of the first that is all, of the second half a second.
    expect(axis.breaks).toEqual([{ from: now(0), to: now(1000) }]);
    const places = [0, 1000, 1001, 1001.5, 1002.5].map((second) => axis.place(now(second)) * 3.5);
    expect(places.map((place) => Number(place.toFixed(6)))).toEqual([0, 1, 2, 2.5, 3.5]);
  });

  it("rises, and stays within its ends", () => {
    const given = task({ state: "pending", eligible_at: iso(5000), attempts: [attempt(1, [100, 101, 104])] });
    const axis = axisOf(rowsOf(given, now(200)));
    const places = Array.from({ length: 200 }, (_, step) => axis.place(now(step * 30 - 100)));
    expect(places).toEqual([...places].sort((one, other) => one - other));
    expect(places.every((place) => place >= 0 && place <= 1)).toBe(true);
  });

  it("is there for what has no length", () => {
    expect(axisOf([]).place(now(0))).toBe(0);
    expect(axisOf(rowsOf(task({ state: "pending" }), now(0))).place(now(0))).toBe(0);
  });
});
