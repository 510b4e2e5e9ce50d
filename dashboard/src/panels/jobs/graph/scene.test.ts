import { describe, expect, it } from "vitest";

import { gathered } from "../grouping";
import { edge, fan, group, node } from "../testing";
import type { Outline } from "../outline";
import { blockColumns, blockSize, cardAt, cardPlace, cardsIn } from "./block";
import { anchored, focusOf } from "./GraphCanvas";
import { layOut } from "./layout";
import { sceneOf, type Scene } from "./scene";
import { stepFrom, targetAt, targetOf } from "./targets";

const NONE = new Set<string>();
const nobody = (): readonly [] => [];
const laid = (scene: Scene) => layOut(scene.layoutInput());

const server: Outline = {
  groups: [
    group("g0", { first: 1 }),
    group("g1", { level: 1, count: 100_000, first: 2, states: { completed: 99_000, failed: 1000 } }),
    group("g2", { level: 2, first: 100_002 }),
  ],
  edges: [
    { group: "g1", upstream: "g0", kind: "on_success", count: 100_000 },
    { group: "g2", upstream: "g1", kind: "on_done", count: 100_000 },
  ],
  merged: false,
  complete: true,
  members: null,
  links: [],
};

describe("a scene", () => {
  it("folds a large fan-out to one box with its count", () => {
    const scene = sceneOf(gathered(fan(100)), NONE, nobody);
    expect(scene.boxes.map((box) => [box.kind, box.group.count])).toEqual([
      ["task", 1],
      ["group", 100],
      ["task", 1],
    ]);
    expect(scene.edges).toEqual([
      { from: 0, to: 1, kind: 0 },
      { from: 1, to: 2, kind: 0 },
    ]);
  });

  it("shows few siblings one by one, with the edges of each", () => {
    const pairs = {
      nodes: [1, 2, 3].flatMap((at) => [node(at * 2, "a"), node(at * 2 + 1, "b")]),
      edges: [1, 2, 3].map((at) => edge(at * 2, at * 2 + 1)),
    };
    const scene = sceneOf(gathered(pairs), NONE, nobody);
    expect(scene.boxes.map((box) => box.kind)).toEqual(new Array(6).fill("task"));
    expect(scene.edges).toHaveLength(3);
  });

  it("unfolds a group into a block of its members, and folds it again", () => {
    const outline = gathered(fan(100));
    const work = outline.groups[1]?.id ?? "";
    const scene = sceneOf(outline, new Set([work]), nobody);
    const block = scene.boxes[1];
    expect(block).toMatchObject({ kind: "block", hasMore: false });
    expect(scene.placeOf(5)).toEqual({ box: 1, card: 3 });
    expect(scene.neighbours(5)).toEqual([
      { id: 1, kind: 0, isUpstream: true },
      { id: 102, kind: 0, isUpstream: false },
    ]);
    expect(sceneOf(outline, NONE, nobody).shape).not.toBe(scene.shape);
  });

  it("shows of a job that was not read whole what was read so far", () => {
    const members = Array.from({ length: 500 }, (_, at) => node(at + 2, "shop.g1"));
    const scene = sceneOf(server, new Set(["g1"]), (id) => (id === "g1" ? members : []));
    expect(scene.boxes[1]).toMatchObject({ kind: "block", hasMore: true, columns: 100 });
    expect(scene.edges.map((each) => each.kind)).toEqual([0, 1]);
  });

  it("keeps its shape when only states change: nothing is laid out anew", () => {
    const outline = gathered(fan(30));
    const before = sceneOf(outline, NONE, nobody);
    const { nodes, edges } = fan(30);
    const after = gathered({ nodes: nodes.map((each) => ({ ...each, state: "running" as const, attempts: 1 })), edges });
    expect(sceneOf(after, NONE, nobody).shape).toBe(before.shape);
    const grown = gathered({ nodes: [...nodes, node(99, "shop.extra")], edges });
    expect(sceneOf(grown, NONE, nobody).shape).not.toBe(before.shape);
  });
});

describe("a block", () => {
  it("finds the card at each place, and none between or behind", () => {
    const columns = blockColumns(100);
    for (const at of [0, 1, columns - 1, columns, 99]) {
      const place = cardPlace(at, columns);
      expect(cardAt({ x: place.x + 1, y: place.y + 1 }, columns, 100)).toBe(at);
    }
    const first = cardPlace(0, columns);
    expect(cardAt({ x: first.x + 200, y: first.y }, columns, 100)).toBeNull();
    expect(cardAt(cardPlace(100, columns), columns, 100)).toBeNull();
    expect(cardAt({ x: 5, y: 5 }, columns, 100)).toBeNull();
  });

  it("does not move its cards when more are read", () => {
    expect(blockColumns(100_000)).toBe(100);
    expect(cardPlace(499, blockColumns(100_000))).toEqual(cardPlace(499, 100));
    const some = blockSize(500, 100, true);
    const more = blockSize(1000, 100, true);
    expect(more.width).toBe(some.width);
    expect(more.height).toBeGreaterThan(some.height);
  });

  it("knows which cards are seen", () => {
    const place = cardPlace(250, 100);
    const range = cardsIn({ x: place.x, y: place.y, width: 1, height: 1 }, 100, 100_000);
    expect(range).toEqual({ fromRow: 2, toRow: 3, fromColumn: 50, toColumn: 51 });
    const all = cardsIn({ x: 0, y: 0, width: 1e6, height: 1e6 }, 100, 100_000);
    expect(all).toEqual({ fromRow: 0, toRow: 1000, fromColumn: 0, toColumn: 100 });
  });
});

describe("what is at a place", () => {
  const members = Array.from({ length: 500 }, (_, at) => node(at + 2, "shop.g1"));
  const scene = sceneOf(server, new Set(["g1"]), () => members);
  const layout = laid(scene);
  const x = layout.x[1] as number;
  const y = layout.y[1] as number;

  it("is a task to open, a group to unfold, more to read, or nothing", () => {
    const card = cardPlace(7, 100);
    expect(targetAt(scene, layout, { x: x + card.x + 3, y: y + card.y + 3 })).toMatchObject({ act: "open", id: 9 });
    expect(targetAt(scene, layout, { x: x + 30, y: y + 5 })).toMatchObject({ act: "fold", group: "g1" });
    expect(targetAt(scene, layout, { x: x + 30, y: y + (layout.heights[1] as number) - 5 })).toMatchObject({ act: "more" });
    expect(targetAt(scene, layout, { x: -50, y: -50 })).toBeNull();
    const folded = sceneOf(server, NONE, nobody);
    const place = laid(folded);
    expect(targetAt(folded, place, { x: (place.x[1] as number) + 5, y: (place.y[1] as number) + 5 })).toMatchObject({
      act: "unfold",
      group: "g1",
    });
  });

  it("can be reached by keys, into a block and out of it", () => {
    let place = stepFrom(scene, layout, null, "right");
    expect(place).toEqual({ box: 0, card: null });
    place = stepFrom(scene, layout, place, "right");
    expect(place).toEqual({ box: 1, card: null });
    place = stepFrom(scene, layout, place, "down");
    place = stepFrom(scene, layout, place, "right");
    expect(place).toEqual({ box: 1, card: 1 });
    expect(place === null ? null : targetOf(scene, place)).toMatchObject({ act: "open", id: 3 });
    place = stepFrom(scene, layout, stepFrom(scene, layout, place, "up"), "right");
    expect(place).toEqual({ box: 2, card: null });
    expect(stepFrom(scene, layout, place, "right")).toEqual(place);
  });
});

describe("where one looks", () => {
  it("stays at what was unfolded when everything is laid out anew", () => {
    const outline = gathered(fan(100));
    const work = outline.groups[1]?.id ?? "";
    const before = sceneOf(outline, NONE, nobody);
    const after = sceneOf(outline, new Set([work]), nobody);
    const [old, made] = [laid(before), laid(after)];
    const view = { x: 10, y: 20, zoom: 0.8 };
    const next = anchored(view, { width: 800, height: 600 }, { scene: before, layout: old }, { scene: after, layout: made }, work);
    expect((made.x[1] as number) - next.x).toBeCloseTo((old.x[1] as number) - view.x);
    expect((made.y[1] as number) - next.y).toBeCloseTo((old.y[1] as number) - view.y);
  });

  it("is at first at what failed, else at what runs", () => {
    const { nodes, edges } = fan(5);
    const states = nodes.map((each) => (each.id === 4 ? { ...each, state: "failed" as const } : each));
    const scene = sceneOf(gathered({ nodes: states, edges }), NONE, nobody);
    const layout = laid(scene);
    const at = scene.placeOf(4)?.box ?? -1;
    expect(focusOf(scene, layout)?.y).toBeCloseTo((layout.y[at] as number) + 23);
    expect(focusOf(sceneOf(gathered(fan(5)), NONE, nobody), layout)).toBeNull();
  });
});
