/** What of the plane is seen: the corner at the upper left, and how large a unit of it is on the screen. Pure. */

export interface Viewport {
  readonly x: number;
  readonly y: number;
  readonly zoom: number;
}

export interface Size {
  readonly width: number;
  readonly height: number;
}

export interface Point {
  readonly x: number;
  readonly y: number;
}

export interface Rectangle extends Point, Size {}

export const PADDING = 32; // pixels of the screen
export const LARGEST_ZOOM = 2.5;
const READABLE = 0.5;

export function toPlane(view: Viewport, point: Point): Point {
  return { x: view.x + point.x / view.zoom, y: view.y + point.y / view.zoom };
}

export function toScreen(view: Viewport, point: Point): Point {
  return { x: (point.x - view.x) * view.zoom, y: (point.y - view.y) * view.zoom };
}

/** What is seen, in units of the plane. */
export function seen(view: Viewport, screen: Size): Rectangle {
  return { x: view.x, y: view.y, width: screen.width / view.zoom, height: screen.height / view.zoom };
}

/** The zoom at which everything is seen; never larger than life. */
export function fittingZoom(content: Size, screen: Size): number {
  const wide = (screen.width - 2 * PADDING) / Math.max(1, content.width);
  const high = (screen.height - 2 * PADDING) / Math.max(1, content.height);
  return Math.max(1e-4, Math.min(1, wide, high));
}

export function smallestZoom(content: Size, screen: Size): number {
  return Math.min(0.5, fittingZoom(content, screen));
}

/** Everything, in the middle. */
export function fitted(content: Size, screen: Size): Viewport {
  const zoom = fittingZoom(content, screen);
  return centred(content, { x: content.width / 2, y: content.height / 2 }, zoom, screen);
}

/**
 * What is seen first: everything, where that can be read; else the beginning, at a size at which it can, with `focus` in
 * the middle where there is something to look at.
 */
export function opened(content: Size, screen: Size, focus: Point | null): Viewport {
  if (fittingZoom(content, screen) >= READABLE) return fitted(content, screen);
  return centred(content, focus ?? { x: 0, y: content.height / 2 }, 0.75, screen);
}

/** A point of the plane in the middle of the screen. */
export function centred(content: Size, point: Point, zoom: number, screen: Size): Viewport {
  const view = { x: point.x - screen.width / zoom / 2, y: point.y - screen.height / zoom / 2, zoom };
  return kept(view, content, screen);
}

/** Moved by pixels of the screen. */
export function moved(view: Viewport, by: Point, content: Size, screen: Size): Viewport {
  return kept({ ...view, x: view.x + by.x / view.zoom, y: view.y + by.y / view.zoom }, content, screen);
}

/** Larger or smaller, with the point of the plane below `at` staying there. */
export function zoomed(view: Viewport, at: Point, factor: number, content: Size, screen: Size): Viewport {
  const zoom = Math.min(LARGEST_ZOOM, Math.max(smallestZoom(content, screen), view.zoom * factor));
  const fixed = toPlane(view, at);
  return kept({ x: fixed.x - at.x / zoom, y: fixed.y - at.y / zoom, zoom }, content, screen);
}

/** Two fingers: the points of the plane that were below them are so again. */
export function pinched(
  view: Viewport,
  before: readonly [Point, Point],
  after: readonly [Point, Point],
  content: Size,
  screen: Size,
): Viewport {
  const distance = (pair: readonly [Point, Point]): number =>
    Math.max(1, Math.hypot(pair[0].x - pair[1].x, pair[0].y - pair[1].y));
  const centre = (pair: readonly [Point, Point]): Point => ({
    x: (pair[0].x + pair[1].x) / 2,
    y: (pair[0].y + pair[1].y) / 2,
  });
  const from = centre(before);
  const to = centre(after);
  const larger = zoomed(view, from, distance(after) / distance(before), content, screen);
  return moved(larger, { x: from.x - to.x, y: from.y - to.y }, content, screen);
}

/** So that a rectangle of the plane is seen, moved as little as may be. */
export function showing(view: Viewport, target: Rectangle, content: Size, screen: Size): Viewport {
  const margin = PADDING / view.zoom;
  const shown = seen(view, screen);
  return kept(
    {
      ...view,
      x: along(view.x, shown.width, target.x - margin, target.x + target.width + margin),
      y: along(view.y, shown.height, target.y - margin, target.y + target.height + margin),
    },
    content,
    screen,
  );
}

function along(start: number, length: number, low: number, high: number): number {
  if (high - low > length || low < start) return low;
  return high > start + length ? high - length : start;
}

/** Nobody gets lost: what is larger than the screen covers it, what is smaller stays on it whole. */
export function kept(view: Viewport, content: Size, screen: Size): Viewport {
  return {
    zoom: view.zoom,
    x: within(view.x, content.width, screen.width / view.zoom, PADDING / view.zoom),
    y: within(view.y, content.height, screen.height / view.zoom, PADDING / view.zoom),
  };
}

function within(start: number, content: number, length: number, padding: number): number {
  const one = -padding;
  const other = content + padding - length;
  return Math.min(Math.max(start, Math.min(one, other)), Math.max(one, other));
}

export function same(one: Viewport, other: Viewport): boolean {
  return (
    Math.abs(one.x - other.x) < 1e-6 && Math.abs(one.y - other.y) < 1e-6 && Math.abs(one.zoom - other.zoom) < 1e-9
  );
}
