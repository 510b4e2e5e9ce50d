import { describe, expect, it } from "vitest";

import { boxAt, eachBoxIn, eachSegmentIn, columnsIn } from "./culling";
import { layOut, ROW_GAP, type Layout, type LayoutInput } from "./layout";
import { crossings, neighbours, order } from "./ordering";
import { stacked } from "./stacking";

function input(levels: readonly number[], edges: readonly (readonly [number, number, number?])[], height = 40): LayoutInput {
  return {
    levels: Int32Array.from(levels),
    widths: new Float64Array(levels.length).fill(100),
    heights: new Float64Array(levels.length).fill(height),
    from: Int32Array.from(edges, (edge) => edge[0]),
    to: Int32Array.from(edges, (edge) => edge[1]),
    kinds: Uint8Array.from(edges, (edge) => edge[2] ?? 0),
  };
}

function overlaps(layout: Layout): number {
  let count = 0;
  for (const { boxes } of layout.columns) {
    for (let at = 1; at < boxes.length; at++) {
      const above = boxes[at - 1] as number;
      const below = boxes[at] as number;
      if ((layout.y[above] as number) + (layout.heights[above] as number) + ROW_GAP > (layout.y[below] as number) + 1e-6) count++;
    }
  }
  return count;
}

describe("stacking", () => {
  it("leaves everything where it wants to be when there is room", () => {
    expect([...stacked([0, 100, 300], [40, 40, 40], 10)]).toEqual([0, 100, 300]);
  });

  it("shares the way when two want the same place, and keeps the order", () => {
    expect([...stacked([100, 100], [40, 40], 10)]).toEqual([75, 125]);
    const tops = stacked([50, 0, 25, 400], [10, 10, 10, 10], 5);
    expect([...tops].every((top, at) => at === 0 || top >= (tops[at - 1] as number) + 15 - 1e-9)).toBe(true);
    expect(tops[3]).toBe(400);
  });

  it("moves the lighter one further", () => {
    const [heavy, light] = stacked([0, 0], [10, 10], 0, [9, 1]);
    expect(heavy).toBeCloseTo(-1);
    expect(light).toBeCloseTo(9);
  });
});

describe("ordering", () => {
  it("counts crossings", () => {
    const down = neighbours(4, [0, 1], [3, 2]);
    const places = Float64Array.from([0, 1, 0, 1]);
    expect(crossings([Int32Array.from([0, 1]), Int32Array.from([2, 3])], down, places)).toBe(1);
  });

  it("takes them away where that can be done", () => {
    // Three chains side by side, the second column upside down.
    const from = [0, 1, 2, 3, 4, 5];
    const to = [5, 4, 3, 8, 7, 6];
    const columns = [Int32Array.from([0, 1, 2]), Int32Array.from([3, 4, 5]), Int32Array.from([6, 7, 8])];
    order(columns, neighbours(9, to, from), neighbours(9, from, to));
    const places = new Float64Array(9);
    for (const column of columns) column.forEach((vertex, at) => (places[vertex] = at));
    expect(crossings(columns, neighbours(9, from, to), places)).toBe(0);
    expect(columns.map((column) => [...column].sort())).toEqual([
      [0, 1, 2],
      [3, 4, 5],
      [6, 7, 8],
    ]);
  });
});

describe("layout", () => {
  it("has a column for each level, however levels are numbered, and nothing overlaps", () => {
    const layout = layOut(input([0, 5, 5, 5, 9], [[0, 1], [0, 2], [0, 3], [1, 4], [2, 4], [3, 4]]));
    expect(layout.columns.map((column) => column.boxes.length)).toEqual([1, 3, 1]);
    expect(layout.x[1]).toBe(layout.x[2]);
    expect((layout.x[1] as number) > (layout.x[0] as number) + 100).toBe(true);
    expect(overlaps(layout)).toBe(0);
    // One before and one behind three are in their middle.
    expect(layout.y[0]).toBeCloseTo(layout.y[2] as number);
    expect(layout.y[4]).toBeCloseTo(layout.y[2] as number);
    expect(Math.min(...layout.y)).toBe(0);
    expect(layout.height).toBeCloseTo(Math.max(...layout.y) + 40);
  });

  it("keeps a place free for an edge over a level, so that it leads past what is there", () => {
    const layout = layOut(input([0, 1, 2], [[0, 1], [1, 2], [0, 2]]));
    const { places, starts, ends } = layout.segments;
    // 0→1, 0→free, through the column, 1→2, free→2.
    expect(ends).toHaveLength(5);
    expect([...ends].filter((end) => end === 1)).toHaveLength(3);
    const through = Array.from({ length: 5 }, (_, at) => [...places.slice(at * 4, at * 4 + 4)]).find(
      ([x1, , x2]) => x1 === layout.x[1] && x2 === (layout.x[1] as number) + 100,
    );
    expect(through).toBeDefined();
    const y = through?.[1] ?? 0;
    expect(y < (layout.y[1] as number) || y > (layout.y[1] as number) + 40).toBe(true);
    expect(starts[layout.columns.length]).toBe(5);
  });

  it("shares the way of long edges of one kind from one box", () => {
    const levels = [0, ...Array.from({ length: 20 }, (_, at) => at + 1)];
    const edges = levels.slice(1).flatMap((level) => (level === 1 ? [[0, 1]] : [[level - 1, level], [0, level]])) as [number, number][];
    const layout = layOut(input(levels, edges));
    // 20 in the chain, 19 that leave the shared way, 19 pieces of it and 19 through columns.
    expect(layout.segments.kinds.length).toBeLessThan(20 + 4 * 20);
  });

  it("draws an edge that leads nowhere forward all the same", () => {
    const layout = layOut(input([0, 0], [[0, 1]]));
    expect(layout.segments.starts.at(-1)).toBe(1);
    expect(layout.segments.starts.at(-2)).toBe(0);
  });

  it("is empty for nothing", () => {
    const layout = layOut(input([], []));
    expect([layout.width, layout.height, layout.columns.length]).toEqual([0, 0, 0]);
  });

  it("has no overlap in a large graph of random edges", () => {
    let seed = 7;
    const random = (below: number): number => {
      seed = (seed * 1103515245 + 12345) % 2147483648;
      return seed % below;
    };
    const levels = Array.from({ length: 2000 }, (_, at) => Math.floor(at / 50));
    const edges = Array.from({ length: 5000 }, () => {
      const to = 50 + random(1950);
      return [random(Math.floor(to / 50) * 50), to] as const;
    });
    const layout = layOut(input(levels, edges));
    expect(overlaps(layout)).toBe(0);
    expect(layout.columns).toHaveLength(40);
  });
});

describe("culling", () => {
  const many = layOut(input(Array.from({ length: 5000 }, (_, at) => at % 50), []));

  it("finds exactly the boxes that meet a part of the plane", () => {
    const part = { x: 300, y: 500, width: 700, height: 400 };
    const found = new Set<number>();
    eachBoxIn(many, part, (box) => found.add(box));
    for (let box = 0; box < 5000; box++) {
      const x = many.x[box] as number;
      const y = many.y[box] as number;
      const meets = x + 100 >= part.x && x <= part.x + part.width && y + 40 >= part.y && y <= part.y + part.height;
      expect(found.has(box), `box ${box}`).toBe(meets);
    }
    expect(found.size).toBeGreaterThan(10);
    expect(columnsIn(many, { x: -500, y: 0, width: 100, height: 10 })).toEqual([0, 0]);
  });

  it("finds the box at a point, and none between them", () => {
    const x = many.x[57] as number;
    const y = many.y[57] as number;
    expect(boxAt(many, { x: x + 1, y: y + 1 })).toBe(57);
    expect(boxAt(many, { x: x + 1, y: y + 40 + ROW_GAP / 2 })).toBeNull();
    expect(boxAt(many, { x: x + 130, y: y + 1 })).toBeNull();
  });

  it("takes no more segments than asked for, the same ones wherever one looks from", () => {
    const wide = layOut(input([0, ...new Array<number>(4000).fill(1)], Array.from({ length: 4000 }, (_, at) => [0, at + 1] as const)));
    const all: number[] = [];
    const everything = { x: 0, y: 0, width: wide.width, height: wide.height };
    eachSegmentIn(wide, everything, 500, (segment) => all.push(segment));
    expect(all.length).toBeLessThanOrEqual(500);
    expect(all.length).toBeGreaterThan(200);
    const shifted: number[] = [];
    eachSegmentIn(wide, { ...everything, x: 40, y: 40 }, 500, (segment) => shifted.push(segment));
    expect(shifted.every((segment) => all.includes(segment))).toBe(true);
  });

  it("sees an edge whose two ends are both outside", () => {
    const layout = layOut(input([0, 1], [[0, 1]]));
    const gap = { x: 120, y: 0, width: 10, height: 40 };
    const found: number[] = [];
    eachSegmentIn(layout, gap, 100, (segment) => found.push(segment));
    expect(found).toEqual([0]);
  });
});
