/** Which boxes are in a part of the plane. Columns lie side by side and boxes of one never overlap: two searches by halves. */

import type { Layout, LayoutColumn } from "./layout";
import type { Point, Rectangle } from "./viewport";

/** The first place of a sorted row at which `holds` is true; its length where it nowhere is. */
export function firstWhere(length: number, holds: (at: number) => boolean): number {
  let low = 0;
  let high = length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (holds(middle)) high = middle;
    else low = middle + 1;
  }
  return low;
}

/** Columns from the first to before the last that meet the rectangle. */
export function columnsIn(layout: Layout, part: Rectangle): readonly [number, number] {
  const { columns } = layout;
  const column = (at: number): LayoutColumn => columns[at] as LayoutColumn;
  const first = firstWhere(columns.length, (at) => column(at).x + column(at).width >= part.x);
  const last = firstWhere(columns.length, (at) => column(at).x > part.x + part.width);
  return [first, last];
}

/** Places in `column.boxes`, from the first to before the last. */
export function boxesIn(layout: Layout, column: LayoutColumn, part: Rectangle): readonly [number, number] {
  const { boxes } = column;
  const top = (at: number): number => layout.y[boxes[at] as number] as number;
  const bottom = (at: number): number => top(at) + (layout.heights[boxes[at] as number] as number);
  const first = firstWhere(boxes.length, (at) => bottom(at) >= part.y);
  const last = firstWhere(boxes.length, (at) => top(at) > part.y + part.height);
  return [first, Math.max(first, last)];
}

/** Calls `take` with each box that is seen. */
export function eachBoxIn(layout: Layout, part: Rectangle, take: (box: number) => void): void {
  const [first, last] = columnsIn(layout, part);
  for (let at = first; at < last; at++) {
    const column = layout.columns[at] as LayoutColumn;
    const [from, to] = boxesIn(layout, column, part);
    for (let place = from; place < to; place++) take(column.boxes[place] as number);
  }
}

/** The box at a point of the plane, or null. */
export function boxAt(layout: Layout, point: Point): number | null {
  let found: number | null = null;
  eachBoxIn(layout, { ...point, width: 0, height: 0 }, (box) => {
    // A box may be narrower than its column.
    if (point.x <= (layout.x[box] as number) + (layout.widths[box] as number)) found = box;
  });
  return found;
}

/**
 * Calls `take` with the place of each segment that may be seen. Above `most` only every so-manieth is: the same ones
 * while nothing changes but the place of the viewer, so that nothing flickers.
 */
export function eachSegmentIn(layout: Layout, part: Rectangle, most: number, take: (segment: number) => void): void {
  const { places, starts } = layout.segments;
  const [first, last] = columnsIn(layout, part);
  // A segment begins in its column and ends in the next one.
  const from = starts[Math.max(0, first - 1)] as number;
  const to = starts[last] as number;
  const bottom = part.y + part.height;
  const step = Math.max(1, Math.ceil((to - from) / (most * 4)));
  const passes = (segment: number): boolean => {
    const y1 = places[segment * 4 + 1] as number;
    const y2 = places[segment * 4 + 3] as number;
    return Math.max(y1, y2) >= part.y && Math.min(y1, y2) <= bottom;
  };
  let count = 0;
  for (let segment = from; segment < to; segment += step) if (passes(segment)) count++;
  // A power of two: it seldom changes while one moves, and what stays is among what was there.
  const each = powerOfTwo(step * Math.max(1, count / most));
  for (let segment = Math.ceil(from / each) * each; segment < to; segment += each) {
    if (passes(segment)) take(segment);
  }
  const right = part.x + part.width;
  const straight = starts[layout.columns.length] as number;
  const end = starts[layout.columns.length + 1] as number;
  const straightStep = Math.max(1, Math.ceil((end - straight) / most));
  for (let segment = straight; segment < end; segment += straightStep) {
    const x1 = places[segment * 4] as number;
    const x2 = places[segment * 4 + 2] as number;
    if (Math.max(x1, x2) >= part.x && Math.min(x1, x2) <= right && passes(segment)) take(segment);
  }
}

function powerOfTwo(least: number): number {
  return 2 ** Math.ceil(Math.log2(least));
}
