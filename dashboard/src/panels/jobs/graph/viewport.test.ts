import { describe, expect, it } from "vitest";

import { fitted, kept, LARGEST_ZOOM, moved, opened, PADDING, pinched, seen, showing, toPlane, toScreen, zoomed, smallestZoom } from "./viewport";

const screen = { width: 800, height: 600 };
const large = { width: 10_000, height: 4000 };

describe("a viewport", () => {
  it("fits what is large, and does not blow up what is small", () => {
    const view = fitted(large, screen);
    const corner = toScreen(view, { x: 0, y: 0 });
    const end = toScreen(view, { x: large.width, y: large.height });
    expect(corner.x).toBeCloseTo(PADDING);
    expect(end.x).toBeCloseTo(screen.width - PADDING);
    expect(corner.y).toBeGreaterThanOrEqual(0);
    expect(end.y).toBeLessThanOrEqual(screen.height);
    expect(fitted({ width: 100, height: 50 }, screen).zoom).toBe(1);
  });

  it("keeps the point below the hand where it is while it zooms", () => {
    const view = { x: 3000, y: 1000, zoom: 0.5 };
    const at = { x: 321, y: 123 };
    const before = toPlane(view, at);
    const after = toPlane(zoomed(view, at, 1.7, large, screen), at);
    expect(after.x).toBeCloseTo(before.x);
    expect(after.y).toBeCloseTo(before.y);
  });

  it("zooms no further than can be of use", () => {
    const view = { x: 3000, y: 1000, zoom: 1 };
    expect(zoomed(view, { x: 0, y: 0 }, 1e6, large, screen).zoom).toBe(LARGEST_ZOOM);
    expect(zoomed(view, { x: 0, y: 0 }, 1e-6, large, screen).zoom).toBeCloseTo(smallestZoom(large, screen));
  });

  it("moves by pixels of the screen, and not beyond what there is", () => {
    const view = { x: 3000, y: 1000, zoom: 0.5 };
    expect(moved(view, { x: 10, y: -20 }, large, screen)).toEqual({ x: 3020, y: 960, zoom: 0.5 });
    const far = moved(view, { x: 1e7, y: -1e7 }, large, screen);
    expect(far.x + screen.width / far.zoom).toBeCloseTo(large.width + PADDING / far.zoom);
    expect(far.y).toBeCloseTo(-PADDING / far.zoom);
    // At the end nothing moves: the page may scroll instead.
    expect(moved(far, { x: 5, y: -5 }, large, screen)).toEqual(far);
  });

  it("lets what is smaller than the screen stay on it whole", () => {
    const small = { width: 200, height: 100 };
    for (const x of [-1e6, 0, 1e6]) {
      const view = kept({ x, y: x, zoom: 1 }, small, screen);
      const corner = toScreen(view, { x: 0, y: 0 });
      expect(corner.x).toBeGreaterThanOrEqual(0);
      expect(corner.x + small.width).toBeLessThanOrEqual(screen.width);
    }
  });

  it("follows two fingers", () => {
    const view = { x: 3000, y: 1000, zoom: 0.5 };
    const before = [{ x: 300, y: 300 }, { x: 500, y: 300 }] as const;
    const after = [{ x: 250, y: 320 }, { x: 550, y: 320 }] as const;
    const next = pinched(view, before, after, large, screen);
    expect(next.zoom).toBeCloseTo(0.75);
    const [one, other] = before.map((point) => toScreen(next, toPlane(view, point)));
    expect(one?.x).toBeCloseTo(250);
    expect(one?.y).toBeCloseTo(320);
    expect(other?.x).toBeCloseTo(550);
  });

  it("opens so that letters can be read, with what needs a look in the middle", () => {
    const view = opened({ width: 100_000, height: 2000 }, screen, { x: 50_000, y: 1000 });
    expect(view.zoom).toBeGreaterThanOrEqual(0.5);
    const part = seen(view, screen);
    expect(part.x + part.width / 2).toBeCloseTo(50_000);
    expect(opened({ width: 600, height: 300 }, screen, { x: 0, y: 0 })).toEqual(fitted({ width: 600, height: 300 }, screen));
  });

  it("moves no further than it must to show something", () => {
    const view = { x: 0, y: 0, zoom: 1 };
    const target = { x: 900, y: 100, width: 100, height: 50 };
    const next = showing(view, target, large, screen);
    expect(next.x).toBe(900 + 100 + PADDING - screen.width);
    expect(next.y).toBe(0);
    expect(showing(next, target, large, screen)).toEqual(next);
  });
});
