/** What is at a point of the plane, and where the keys go from there. */

import { BLOCK_FOOTING, BLOCK_HEADING, cardAt } from "./block";
import { boxAt } from "./culling";
import type { Layout } from "./layout";
import type { Place, Scene } from "./scene";
import type { Point } from "./viewport";

/** What a click there does. */
export type Target =
  | { readonly act: "open"; readonly id: number; readonly place: Place }
  | { readonly act: "unfold" | "fold" | "more"; readonly group: string; readonly place: Place }
  | { readonly act: "none"; readonly place: Place };

export function targetAt(scene: Scene, layout: Layout, point: Point): Target | null {
  const at = boxAt(layout, point);
  const box = at === null ? undefined : scene.boxes[at];
  if (at === null || box === undefined) return null;
  const place: Place = { box: at, card: null };
  if (box.kind === "task") return { act: "open", id: box.id, place };
  if (box.kind === "group") return { act: "unfold", group: box.key, place };
  const inside = { x: point.x - (layout.x[at] as number), y: point.y - (layout.y[at] as number) };
  if (inside.y < BLOCK_HEADING) return { act: "fold", group: box.key, place };
  if (box.hasMore && inside.y > (layout.heights[at] as number) - BLOCK_FOOTING) {
    return { act: "more", group: box.key, place };
  }
  const card = cardAt(inside, box.columns, box.members.length);
  const member = card === null ? undefined : box.members[card];
  if (member === undefined) return { act: "none", place };
  return { act: "open", id: member.id, place: { box: at, card } };
}

/** What Enter does at a place. */
export function targetOf(scene: Scene, place: Place): Target | null {
  const box = scene.boxes[place.box];
  if (box === undefined) return null;
  if (box.kind === "task") return { act: "open", id: box.id, place };
  if (box.kind === "group") return { act: "unfold", group: box.key, place };
  const member = place.card === null ? undefined : box.members[place.card];
  return member === undefined ? { act: "fold", group: box.key, place } : { act: "open", id: member.id, place };
}

export type Direction = "left" | "right" | "up" | "down";

/** The next place in a direction; the same where there is none. */
export function stepFrom(scene: Scene, layout: Layout, place: Place | null, direction: Direction): Place | null {
  if (place === null || scene.boxes[place.box] === undefined) {
    const first = layout.columns[0]?.boxes[0];
    return first === undefined ? null : { box: first, card: null };
  }
  return stepInBlock(scene, place, direction) ?? stepBetween(scene, layout, place, direction);
}

function stepInBlock(scene: Scene, place: Place, direction: Direction): Place | null {
  const box = scene.boxes[place.box];
  if (box === undefined || box.kind !== "block") return null;
  // From the heading down into the cards, and from the first row back up to it.
  if (place.card === null) return direction === "down" && box.members.length > 0 ? { ...place, card: 0 } : null;
  const column = place.card % box.columns;
  const to = {
    left: column === 0 ? -1 : place.card - 1,
    right: column === box.columns - 1 ? -1 : place.card + 1,
    up: place.card - box.columns,
    down: place.card + box.columns,
  }[direction];
  if (direction === "up" && to < 0) return { ...place, card: null };
  return to >= 0 && to < box.members.length ? { ...place, card: to } : null;
}

function stepBetween(scene: Scene, layout: Layout, place: Place, direction: Direction): Place {
  const column = layout.columns.findIndex((each) => each.boxes.includes(place.box));
  const boxes = layout.columns[column]?.boxes;
  if (boxes === undefined) return place;
  if (direction === "up" || direction === "down") {
    const next = boxes[boxes.indexOf(place.box) + (direction === "down" ? 1 : -1)];
    return next === undefined ? place : { box: next, card: null };
  }
  const beside = layout.columns[column + (direction === "right" ? 1 : -1)]?.boxes;
  if (beside === undefined) return place;
  const joined = new Set(
    scene.edges.flatMap(({ from, to }) => (from === place.box ? [to] : to === place.box ? [from] : [])),
  );
  const middle = (box: number): number => (layout.y[box] as number) + (layout.heights[box] as number) / 2;
  // Along an edge where there is one, else to what is nearest.
  let best: number | null = null;
  let least = Infinity;
  for (const box of beside) {
    const distance = Math.abs(middle(box) - middle(place.box)) + (joined.has(box) ? 0 : 1e9);
    if (distance < least) [best, least] = [box, distance];
  }
  return best === null ? place : { box: best, card: null };
}
