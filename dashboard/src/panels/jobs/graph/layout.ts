/**
 * Layered layout: a column for each level, from left to right. Pure, and all in flat arrays, so that a worker can do it and
 * hand the result over without a copy.
 *
 * An edge over several levels goes through places that are kept free for it in the columns between. Edges of one kind
 * from one box share them as far as they go the same way.
 */

import { neighbours, order } from "./ordering";
import { stacked } from "./stacking";

export interface LayoutInput {
  /** One each for every box. */
  readonly levels: Int32Array;
  readonly widths: Float64Array;
  readonly heights: Float64Array;
  /** One each for every edge: places of boxes. */
  readonly from: Int32Array;
  readonly to: Int32Array;
  readonly kinds: Uint8Array;
}

export interface LayoutColumn {
  readonly x: number;
  readonly width: number;
  /** Places of boxes, from the top. */
  readonly boxes: Int32Array;
}

/** Lines between the right side of one thing and the left side of another, in the order of the columns they begin in. */
export interface Segments {
  /** x1, y1, x2, y2 of each. */
  readonly places: Float64Array;
  readonly kinds: Uint8Array;
  /** 1 where it ends at a box, and not at a place that is kept free. */
  readonly ends: Uint8Array;
  /** Segments of column c are starts[c] to starts[c + 1] - 1; the last list holds those over several columns. */
  readonly starts: Int32Array;
}

export interface Layout {
  /** Upper left corners. */
  readonly x: Float64Array;
  readonly y: Float64Array;
  readonly widths: Float64Array;
  readonly heights: Float64Array;
  readonly width: number;
  readonly height: number;
  readonly columns: readonly LayoutColumn[];
  readonly segments: Segments;
}

export const COLUMN_GAP = 84;
export const ROW_GAP = 16;
const FREE_HEIGHT = 4;
const PASSES = 4;
// More places kept free than this would cost more than lines behind boxes do harm.
const MOST_FREE = 40_000;

export function layOut(input: LayoutInput): Layout {
  const boxes = input.levels.length;
  const { columnOf, count } = columnsOf(input.levels);
  const free = new FreePlaces(boxes, columnOf);
  for (let at = 0; at < input.from.length; at++) {
    free.join(input.from[at] as number, input.to[at] as number, input.kinds[at] as number);
  }

  const vertices = boxes + free.columns.length;
  const vertexColumn = (vertex: number): number =>
    (vertex < boxes ? columnOf[vertex] : free.columns[vertex - boxes]) as number;
  const columns = gatherColumns(vertices, count, vertexColumn);
  const up = neighbours(vertices, free.ends, free.begins);
  const down = neighbours(vertices, free.begins, free.ends);
  order(columns, up, down);

  const heights = new Float64Array(vertices).fill(FREE_HEIGHT);
  heights.set(input.heights);
  const tops = placeRows(columns, heights, boxes, up, down);

  const columnWidths = new Float64Array(count);
  for (let box = 0; box < boxes; box++) {
    const column = columnOf[box] as number;
    columnWidths[column] = Math.max(columnWidths[column] as number, input.widths[box] as number);
  }
  const lefts = new Float64Array(count);
  for (let column = 1; column < count; column++) {
    lefts[column] = (lefts[column - 1] as number) + (columnWidths[column - 1] as number) + COLUMN_GAP;
  }

  const x = new Float64Array(boxes);
  const y = new Float64Array(boxes);
  let bottom = 0;
  for (let box = 0; box < boxes; box++) {
    x[box] = lefts[columnOf[box] as number] as number;
    y[box] = tops[box] as number;
    bottom = Math.max(bottom, (y[box] as number) + (input.heights[box] as number));
  }
  const last = count - 1;
  return {
    x,
    y,
    widths: input.widths,
    heights: input.heights,
    width: count === 0 ? 0 : (lefts[last] as number) + (columnWidths[last] as number),
    height: bottom,
    columns: columns.map((column, at) => ({
      x: lefts[at] as number,
      width: columnWidths[at] as number,
      boxes: column.filter((vertex) => vertex < boxes),
    })),
    segments: segmentsOf(free, vertexColumn, { boxes, tops, heights, lefts, columnWidths, widths: input.widths }),
  };
}

/** Levels need not be without gaps; columns are. */
function columnsOf(levels: Int32Array): { readonly columnOf: Int32Array; readonly count: number } {
  const sorted = [...new Set(levels)].sort((one, other) => one - other);
  const places = new Map(sorted.map((level, at) => [level, at]));
  return { columnOf: levels.map((level) => places.get(level) ?? 0), count: sorted.length };
}

function gatherColumns(vertices: number, count: number, columnOf: (vertex: number) => number): Int32Array[] {
  const lists: number[][] = Array.from({ length: count }, () => []);
  for (let vertex = 0; vertex < vertices; vertex++) lists[columnOf(vertex)]?.push(vertex);
  return lists.map((list) => Int32Array.from(list));
}

/** Edges between neighbouring columns, with places kept free for those that go further. */
class FreePlaces {
  /** The column of each place. */
  readonly columns: number[] = [];
  readonly kinds: number[] = [];
  /** Edges between vertices of neighbouring columns. */
  readonly begins: number[] = [];
  readonly ends: number[] = [];
  readonly edgeKinds: number[] = [];
  /** Edges that are drawn straight: there is no place for them, or they do not lead forward. */
  readonly straight: { readonly from: number; readonly to: number; readonly kind: number }[] = [];
  private readonly chains = new Map<number, number[]>();

  constructor(
    private readonly boxes: number,
    private readonly columnOf: Int32Array,
  ) {}

  join(from: number, to: number, kind: number): void {
    const first = this.columnOf[from] as number;
    const span = (this.columnOf[to] as number) - first;
    if (span < 1 || (span > 1 && this.columns.length + span > MOST_FREE)) {
      this.straight.push({ from, to, kind });
      return;
    }
    let begin = from;
    if (span > 1) {
      const key = from * 4 + kind;
      const chain = this.chains.get(key) ?? [];
      this.chains.set(key, chain);
      while (chain.length < span - 1) {
        const place = this.boxes + this.columns.length;
        this.columns.push(first + chain.length + 1);
        this.kinds.push(kind);
        this.edge(chain.at(-1) ?? from, place, kind);
        chain.push(place);
      }
      begin = chain[span - 2] as number;
    }
    this.edge(begin, to, kind);
  }

  private edge(begin: number, end: number, kind: number): void {
    this.begins.push(begin);
    this.ends.push(end);
    this.edgeKinds.push(kind);
  }
}

/** Tops of all vertices: near the middle of what they are joined with, without overlap. The least is 0. */
function placeRows(
  columns: readonly Int32Array[],
  heights: Float64Array,
  boxes: number,
  up: ReturnType<typeof neighbours>,
  down: ReturnType<typeof neighbours>,
): Float64Array {
  const tops = new Float64Array(heights.length);
  for (const column of columns) {
    let total = 0;
    for (const vertex of column) total += (heights[vertex] as number) + ROW_GAP;
    let top = -total / 2;
    for (const vertex of column) {
      tops[vertex] = top;
      top += (heights[vertex] as number) + ROW_GAP;
    }
  }
  const middle = (vertex: number): number => (tops[vertex] as number) + (heights[vertex] as number) / 2;
  const settle = (column: Int32Array, sides: readonly (typeof up)[]): void => {
    const wanted = new Float64Array(column.length);
    const sizes = new Float64Array(column.length);
    const weights = new Float64Array(column.length);
    for (let at = 0; at < column.length; at++) {
      const vertex = column[at] as number;
      let sum = 0;
      let n = 0;
      for (const { starts, targets } of sides) {
        for (let edge = starts[vertex] as number; edge < (starts[vertex + 1] as number); edge++) {
          sum += middle(targets[edge] as number);
          n++;
        }
      }
      const height = heights[vertex] as number;
      sizes[at] = height;
      wanted[at] = n === 0 ? (tops[vertex] as number) : sum / n - height / 2;
      // What has no neighbours gives way; long edges want to be straight.
      weights[at] = n === 0 ? 0.05 : vertex < boxes ? 1 : 2;
    }
    const settled = stacked(wanted, sizes, ROW_GAP, weights);
    for (let at = 0; at < column.length; at++) tops[column[at] as number] = settled[at] as number;
  };
  for (let pass = 0; pass < PASSES; pass++) {
    for (const column of columns) settle(column, [up]);
    for (const column of columns.toReversed()) settle(column, [down]);
  }
  for (const column of columns) settle(column, [up, down]);
  let least = Infinity;
  for (const top of tops) least = Math.min(least, top);
  if (Number.isFinite(least)) for (let at = 0; at < tops.length; at++) tops[at] = (tops[at] as number) - least;
  return tops;
}

interface Placed {
  readonly boxes: number;
  readonly tops: Float64Array;
  readonly heights: Float64Array;
  readonly lefts: Float64Array;
  readonly columnWidths: Float64Array;
  readonly widths: Float64Array;
}

function segmentsOf(free: FreePlaces, columnOf: (vertex: number) => number, placed: Placed): Segments {
  const { boxes, tops, heights, lefts, columnWidths, widths } = placed;
  const columns = lefts.length;
  const count = free.begins.length + free.columns.length + free.straight.length;
  const starts = new Int32Array(columns + 2);
  const column = new Int32Array(count);
  let at = 0;
  for (const begin of free.begins) column[at++] = columnOf(begin);
  for (const own of free.columns) column[at++] = own;
  while (at < count) column[at++] = columns;
  for (const each of column) starts[each + 1] = (starts[each + 1] as number) + 1;
  for (let next = 0; next <= columns; next++) starts[next + 1] = (starts[next + 1] as number) + (starts[next] as number);

  const filled = starts.slice();
  const places = new Float64Array(count * 4);
  const kinds = new Uint8Array(count);
  const ends = new Uint8Array(count);
  const middle = (vertex: number): number => (tops[vertex] as number) + (heights[vertex] as number) / 2;
  const left = (vertex: number): number => lefts[columnOf(vertex)] as number;
  const right = (vertex: number): number =>
    left(vertex) + ((vertex < boxes ? widths[vertex] : columnWidths[columnOf(vertex)]) as number);
  const put = (of: number, x1: number, y1: number, x2: number, y2: number, kind: number, end: boolean): void => {
    const place = filled[of] as number;
    filled[of] = place + 1;
    places.set([x1, y1, x2, y2], place * 4);
    kinds[place] = kind;
    ends[place] = end ? 1 : 0;
  };
  for (let edge = 0; edge < free.begins.length; edge++) {
    const begin = free.begins[edge] as number;
    const end = free.ends[edge] as number;
    const kind = free.edgeKinds[edge] as number;
    put(columnOf(begin), right(begin), middle(begin), left(end), middle(end), kind, end < boxes);
  }
  for (let place = 0; place < free.columns.length; place++) {
    const vertex = boxes + place;
    put(columnOf(vertex), left(vertex), middle(vertex), right(vertex), middle(vertex), free.kinds[place] as number, false);
  }
  for (const { from, to, kind } of free.straight) {
    put(columns, right(from), middle(from), left(to), middle(to), kind, true);
  }
  return { places, kinds, ends, starts };
}
