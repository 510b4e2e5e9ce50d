import { describe, expect, it } from "vitest";

import type { PagedList } from "../paging";
import type { Timed } from "../reading";
import { group } from "../testing";
import { barsOfGroup, barsOfTask, extentOf, ganttRows, listsOf, rowName } from "./rows";
import { axisTicks, distanceText, keptIn, lengthOf, movedSpan, partAt, wholeSpan, zoomedSpan } from "./scale";

const START = Date.parse("2026-05-01T08:00:00Z");
const at = (seconds: number): string => new Date(START + seconds * 1000).toISOString();

function timed(id: number, more: Partial<Timed> = {}): Timed {
  return {
    id,
    name: "shop.work",
    task: "shop.work",
    group: "g1",
    level: 1,
    state: "completed",
    created_at: at(0),
    started_at: at(1),
    finished_at: at(3),
    attempts: [],
    ...more,
  };
}

describe("the time axis", () => {
  const whole = wholeSpan(START, START + 100_000);

  it("has room on both sides, and never no length", () => {
    expect(partAt(whole, START)).toBeGreaterThan(0);
    expect(partAt(whole, START + 100_000)).toBeLessThan(1);
    expect(lengthOf(wholeSpan(START, START))).toBeGreaterThan(0);
  });

  it("zooms around an instant and stays inside the whole", () => {
    const span = zoomedSpan(whole, 0.25, 0.5, whole);
    const fixed = whole.from + lengthOf(whole) * 0.25;
    expect(partAt(span, fixed)).toBeCloseTo(0.25);
    expect(lengthOf(span)).toBeCloseTo(lengthOf(whole) / 2);
    expect(zoomedSpan(span, 0.5, 1000, whole)).toEqual(whole);
    expect(movedSpan(span, 1000, whole).to).toBeCloseTo(whole.to);
    expect(movedSpan(span, -1000, whole).from).toBeCloseTo(whole.from);
    expect(lengthOf(keptIn({ from: 0, to: 5 }, whole))).toBe(5);
  });

  it("has round ticks, not too many", () => {
    const ticks = axisTicks({ from: START - 1000, to: START + 61_000 }, START, 7);
    expect(ticks.map((tick) => tick.label)).toEqual(["0", "+10 s", "+20 s", "+30 s", "+40 s", "+50 s", "+1:00"]);
    expect(axisTicks({ from: START, to: START + 400 * 86_400_000 }, START, 6).length).toBeLessThanOrEqual(7);
    expect(axisTicks({ from: START, to: START + 3 }, START, 3).map((tick) => tick.label)).toEqual(["0", "+1 ms", "+2 ms", "+3 ms"]);
  });

  it("writes distances as exactly as the step asks for", () => {
    expect(distanceText(1500, 500)).toBe("+1.5 s");
    expect(distanceText(-2000, 1000)).toBe("−2 s");
    expect(distanceText(90_000, 30_000)).toBe("+1:30");
    expect(distanceText(600_000, 300_000)).toBe("+10 min");
    expect(distanceText(5_400_000, 1_800_000)).toBe("+1:30 h");
    expect(distanceText(7_200_000, 3_600_000)).toBe("+2 h");
    expect(distanceText(3 * 86_400_000, 86_400_000)).toBe("+3 d");
  });
});

describe("bars of a task", () => {
  it("are its waiting and each execution", () => {
    const bars = barsOfTask(
      timed(1, {
        attempts: [
          { claim_no: 1, state: "failed", charged: true, worker: "w", started_at: at(1), finished_at: at(2) },
          { claim_no: 2, state: "refused", charged: false, worker: "w", started_at: null, finished_at: null },
          { claim_no: 3, state: "succeeded", charged: true, worker: "w", started_at: at(5), finished_at: at(9) },
        ],
      }),
      START + 60_000,
    );
    expect(bars.map(({ kind, tone, attempt, from, to }) => [kind, tone, attempt, (from - START) / 1000, (to - START) / 1000])).toEqual([
      ["wait", "waiting", 0, 0, 1],
      ["run", "bad", 1, 1, 2],
      ["run", "good", 2, 5, 9],
    ]);
  });

  it("go on to now while it runs or waits, and have an end when it has ended", () => {
    const now = START + 20_000;
    expect(barsOfTask(timed(1, { state: "running", finished_at: null }), now).at(-1)?.to).toBe(now);
    const waiting = barsOfTask(timed(1, { state: "pending", started_at: null, finished_at: null }), now);
    expect(waiting).toMatchObject([{ kind: "wait", to: now }]);
    const skipped = barsOfTask(timed(1, { state: "cancelled", started_at: null, finished_at: at(4) }), now);
    expect(skipped).toMatchObject([{ kind: "wait", to: START + 4000 }]);
    const lost = timed(1, { state: "lost", finished_at: null, attempts: [{ claim_no: 1, state: "lost", charged: true, worker: "w", started_at: at(1), finished_at: null }] });
    expect(barsOfTask(lost, now).at(-1)).toMatchObject({ tone: "warn", to: START + 1000 });
  });

  it("of a group are one, from the first start to the last end", () => {
    expect(barsOfGroup(group("g", { count: 9, started_at: at(2), finished_at: at(6), states: { completed: 9 } }), 0)).toMatchObject([
      { kind: "sum", tone: "good", from: START + 2000, to: START + 6000 },
    ]);
    expect(barsOfGroup(group("g"), START)).toEqual([]);
  });
});

describe("rows", () => {
  const groups = [group("g1", { level: 1, count: 3 }), group("g0", { level: 0, first: 5 })];

  it("are groups by level, members below those that are unfolded", () => {
    const lists = listsOf([timed(5, { group: "g0", level: 0 }), timed(6), timed(7, { name: "blue" }), timed(8)]);
    expect(ganttRows(groups, new Set(), lists).map((row) => row.kind)).toEqual(["task", "group"]);
    const rows = ganttRows(groups, new Set(["g1"]), lists);
    expect(rows.map((row) => [row.kind, rowName(row)])).toEqual([
      ["task", "work"],
      ["group", "g1"],
      ["task", "#6"],
      ["task", "blue"],
      ["task", "#8"],
    ]);
  });

  it("say that there is more of a group that was not read whole", () => {
    const list: PagedList<Timed> = { items: [timed(6)], hasMore: true, isReading: false, problem: null };
    const rows = ganttRows(groups, new Set(["g1"]), (id) => (id === "g1" ? list : { ...list, items: [] }));
    expect(rows.map((row) => row.kind)).toEqual(["single", "group", "task", "more"]);
  });

  it("have a name where tasks of several were put together", () => {
    const [row] = ganttRows([group("g", { count: 5, task: null })], new Set(), listsOf([]));
    expect(row === undefined ? null : rowName(row)).toBe("several tasks");
  });

  it("reach from the first start to the end, or to now", () => {
    const job = { created_at: at(0), started_at: at(1), completed_at: null };
    expect(extentOf(job, [], START + 30_000)).toEqual({ since: START + 1000, until: START + 30_000 });
    const over = { ...job, completed_at: at(10) };
    const late = group("g", { started_at: at(0.5), finished_at: at(12) });
    expect(extentOf(over, [late], START + 30_000)).toEqual({ since: START + 500, until: START + 12_000 });
  });
});
