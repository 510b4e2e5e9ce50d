import { describe, expect, it } from "vitest";

import { gathered } from "./grouping";
import { edge, fan, node } from "./testing";

describe("tasks gathered into groups", () => {
  it("puts siblings of one name that wait for the same together, with counts and levels", () => {
    const outline = gathered(fan(100));
    expect(outline.groups.map(({ task, level, count }) => [task, level, count])).toEqual([
      ["shop.load", 0, 1],
      ["shop.work", 1, 100],
      ["shop.join", 2, 1],
    ]);
    const [load, work, join] = outline.groups.map((group) => group.id);
    expect(outline.edges).toEqual([
      { group: work, upstream: load, kind: "on_success", count: 100 },
      { group: join, upstream: work, kind: "on_success", count: 100 },
    ]);
    expect(outline.members?.get(work ?? "")).toHaveLength(100);
  });

  it("keeps apart what waits in another way, for another group, or is of another name", () => {
    const outline = gathered({
      nodes: [node(1, "a"), node(2, "b"), node(3, "c"), node(4, "c"), node(5, "c"), node(6, "d")],
      edges: [edge(1, 3), edge(1, 4, "on_failure"), edge(2, 5), edge(1, 6)],
    });
    expect(outline.groups.filter((group) => group.task === "c").map((group) => group.count)).toEqual([1, 1, 1]);
    expect(outline.groups).toHaveLength(6);
  });

  it("gives a level behind the furthest of what is waited for, whatever the order of ids", () => {
    const outline = gathered({
      nodes: [node(1, "last"), node(2, "first"), node(3, "middle")],
      edges: [edge(2, 3), edge(3, 1), edge(2, 1)],
    });
    expect(outline.groups.map(({ task, level }) => [task, level])).toEqual([
      ["first", 0],
      ["middle", 1],
      ["last", 2],
    ]);
  });

  it("sums states, times and labels", () => {
    const outline = gathered({
      nodes: [
        node(1, "w", { name: "blue", state: "completed", started_at: "2026-05-01T08:00:02Z", finished_at: "2026-05-01T08:00:04Z", took: 2 }),
        node(2, "w", { name: "blue", state: "failed", started_at: "2026-05-01T08:00:01Z", finished_at: "2026-05-01T08:00:05Z", took: 4, error: "E: x" }),
      ],
      edges: [],
    });
    expect(outline.groups[0]).toMatchObject({
      label: "blue",
      count: 2,
      states: { completed: 1, failed: 1 },
      started_at: "2026-05-01T08:00:01Z",
      finished_at: "2026-05-01T08:00:05Z",
      took: { n: 2, mean: 3, max: 4 },
      failed: 2,
      error: "E: x",
    });
    const other = gathered({ nodes: [node(1, "w", { name: "blue" }), node(2, "w", { name: "red" })], edges: [] });
    expect(other.groups[0]).toMatchObject({ label: null, finished_at: null, failed: null, took: { n: 0, mean: null } });
  });

  it("has the same ids of groups when only states have changed", () => {
    const before = gathered(fan(20));
    const { nodes, edges } = fan(20);
    const after = gathered({ nodes: nodes.map((each) => ({ ...each, state: "completed" as const })), edges });
    expect(after.groups.map((group) => group.id)).toEqual(before.groups.map((group) => group.id));
  });

  it("does not fail on a chain of thousands, nor on edges to tasks that are not there", () => {
    const count = 5000;
    const nodes = Array.from({ length: count }, (_, at) => node(count - at, "step"));
    const edges = Array.from({ length: count - 1 }, (_, at) => edge(at + 1, at + 2));
    const outline = gathered({ nodes, edges: [...edges, edge(99_999, 1)] });
    expect(outline.groups).toHaveLength(count);
    expect(outline.groups.at(-1)?.level).toBe(count - 1);
  });
});
