/** A graph on a canvas: hands and keys become a viewport, and what has changed is drawn with the next frame. */

import type { Layout } from "./layout";
import { Painter, placeOf } from "./painter";
import { readPalette, watchTheme, type Palette } from "./palette";
import type { Place, Scene } from "./scene";
import { stepFrom, targetAt, targetOf, type Direction, type Target } from "./targets";
import {
  fitted,
  kept,
  moved,
  opened,
  pinched,
  same,
  showing,
  toPlane,
  toScreen,
  zoomed,
  type Point,
  type Rectangle,
  type Size,
  type Viewport,
} from "./viewport";

export interface GraphEvents {
  /** Somebody asks for what a target does; `aside`: in a window of its own. */
  act(target: Target, aside: boolean): void;
  /** What is pointed at or was come to by keys, and where on the screen that is; null: nothing. */
  pointed(place: Place | null, at: Rectangle | null, byKeys: boolean): void;
  /** It was moved or zoomed. */
  viewed(view: Viewport): void;
}

const STEP = 80; // pixels for an arrow key
const ZOOM_STEP = 1.25;
const STILL = 4; // pixels that a hand may move and still only press
const LINE = 16;
const MOST_DENSITY = 2;
const ARROWS: Readonly<Record<string, Direction>> = {
  ArrowLeft: "left",
  ArrowRight: "right",
  ArrowUp: "up",
  ArrowDown: "down",
};

export class GraphCanvas {
  private readonly painter: Painter | null;
  private palette: Palette;
  private scene: Scene | null = null;
  private layout: Layout | null = null;
  private view: Viewport | null;
  private screen: Size = { width: 0, height: 0 };
  private density = 1;
  private reading: ReadonlySet<string> = new Set();
  private pointedAt: Place | null = null;
  private selected: Place | null = null;
  private frame: number | null = null;
  private readonly hands = new Map<number, Point>();
  private pressed: { readonly at: Point; moved: boolean } | null = null;
  private readonly endings: (() => void)[] = [];

  constructor(
    private readonly canvas: HTMLCanvasElement,
    private readonly events: GraphEvents,
    /** Where it was left when it was last shown. */
    view: Viewport | null,
  ) {
    const context = canvas.getContext("2d", { alpha: false });
    this.painter = context === null ? null : new Painter(context);
    this.palette = readPalette();
    this.view = view;
    this.endings.push(
      watchTheme(() => {
        this.palette = readPalette();
        this.invalidate();
      }),
    );
    this.listen("pointerdown", this.down);
    this.listen("pointermove", this.move);
    this.listen("pointerup", this.up);
    this.listen("pointercancel", this.cancel);
    this.listen("pointerleave", this.leave);
    this.listen("wheel", this.wheel);
    this.listen("keydown", this.key);
    this.listen("blur", this.blur);
  }

  destroy(): void {
    for (const end of this.endings) end();
    if (this.frame !== null) cancelAnimationFrame(this.frame);
  }

  resize(screen: Size, density: number): void {
    if (screen.width <= 0 || screen.height <= 0) return;
    const before = this.screen;
    this.screen = screen;
    this.density = Math.min(MOST_DENSITY, density);
    this.canvas.width = Math.round(screen.width * this.density);
    this.canvas.height = Math.round(screen.height * this.density);
    if (this.view !== null && this.layout !== null && before.width > 0) this.look(kept(this.view, this.layout, screen));
    this.open();
    // At once: a canvas whose size was set is blank, and the next frame is too late for the eye.
    this.paint();
  }

  /** Another state of the same graph, or another graph. `anchor`: the key of the box that must stay where it is. */
  show(scene: Scene, layout: Layout, anchor: string | null): void {
    const before = this.scene === null || this.layout === null ? null : { scene: this.scene, layout: this.layout };
    const isMoved = before !== null && before.layout !== layout;
    const marked = { pointed: this.keyOf(this.pointedAt), selected: this.keyOf(this.selected) };
    this.scene = scene;
    this.layout = layout;
    if (isMoved) {
      this.pointedAt = this.found(marked.pointed);
      this.selected = this.found(marked.selected);
      if (this.view !== null && this.screen.width > 0) {
        this.look(kept(anchored(this.view, this.screen, before, { scene, layout }, anchor), layout, this.screen));
      }
    }
    this.open();
    this.invalidate();
  }

  readonly setReading = (groups: ReadonlySet<string>): void => {
    this.reading = groups;
    this.invalidate();
  };

  fit(): void {
    if (this.layout !== null) this.look(fitted(this.layout, this.screen));
  }

  zoomBy(factor: number, at?: Point): void {
    if (this.view === null || this.layout === null) return;
    const point = at ?? { x: this.screen.width / 2, y: this.screen.height / 2 };
    this.look(zoomed(this.view, point, factor, this.layout, this.screen));
  }

  readonly larger = (): void => this.zoomBy(ZOOM_STEP);
  readonly smaller = (): void => this.zoomBy(1 / ZOOM_STEP);

  /** Draws with the next frame; often enough it was asked for more than once until then. */
  readonly invalidate = (): void => {
    this.frame ??= requestAnimationFrame(() => {
      this.frame = null;
      this.paint();
    });
  };

  private paint(): void {
    const { scene, layout, view, screen, density, palette, reading } = this;
    if (this.painter === null || scene === null || layout === null || view === null || screen.width === 0) return;
    const marks = { pointed: this.pointedAt, selected: this.selected };
    this.painter.paint({ scene, layout, view, screen, density, palette, marks, now: Date.now(), reading });
  }

  /** The first look, once there is something to look at and something to look through. */
  private open(): void {
    if (this.layout === null || this.scene === null || this.screen.width === 0) return;
    if (this.view === null) this.look(opened(this.layout, this.screen, focusOf(this.scene, this.layout)));
    else this.look(kept(this.view, this.layout, this.screen));
  }

  private look(view: Viewport): void {
    if (this.view !== null && same(this.view, view)) return;
    this.view = view;
    this.events.viewed(view);
    this.invalidate();
  }

  private listen<Name extends keyof HTMLElementEventMap>(
    name: Name,
    heard: (event: HTMLElementEventMap[Name]) => void,
  ): void {
    this.canvas.addEventListener(name, heard, { passive: false });
    this.endings.push(() => this.canvas.removeEventListener(name, heard));
  }

  private pointOf(event: MouseEvent): Point {
    const box = this.canvas.getBoundingClientRect();
    return { x: event.clientX - box.left, y: event.clientY - box.top };
  }

  private readonly down = (event: PointerEvent): void => {
    if (event.button !== 0 && event.button !== 1) return;
    this.canvas.setPointerCapture?.(event.pointerId);
    this.hands.set(event.pointerId, this.pointOf(event));
    if (event.button === 1) event.preventDefault();
    if (this.hands.size === 1) this.pressed = { at: this.pointOf(event), moved: event.button === 1 };
    else if (this.pressed !== null) this.pressed.moved = true;
    this.setSelected(null);
  };

  private readonly move = (event: PointerEvent): void => {
    const at = this.pointOf(event);
    const before = this.hands.get(event.pointerId);
    if (before === undefined) {
      if (event.pointerType !== "touch") this.point(at);
      return;
    }
    if (this.view === null || this.layout === null) return;
    const pair = [...this.hands.values()] as const;
    this.hands.set(event.pointerId, at);
    const [one, other] = pair;
    if (pair.length === 2 && one !== undefined && other !== undefined) {
      const [first, second] = [...this.hands.values()];
      if (first !== undefined && second !== undefined) {
        this.look(pinched(this.view, [one, other], [first, second], this.layout, this.screen));
      }
      return;
    }
    if (this.pressed !== null && !this.pressed.moved) {
      if (Math.hypot(at.x - this.pressed.at.x, at.y - this.pressed.at.y) <= STILL) {
        this.hands.set(event.pointerId, before);
        return;
      }
      this.pressed.moved = true;
      this.setPointed(null);
    }
    this.canvas.style.cursor = "grabbing";
    this.look(moved(this.view, { x: before.x - at.x, y: before.y - at.y }, this.layout, this.screen));
  };

  private readonly up = (event: PointerEvent): void => {
    this.hands.delete(event.pointerId);
    const { pressed } = this;
    if (this.hands.size > 0) return;
    this.pressed = null;
    this.canvas.style.cursor = "";
    if (pressed === null || pressed.moved) return;
    const target = this.targetAt(this.pointOf(event));
    if (target !== null) this.events.act(target, event.ctrlKey || event.metaKey);
  };

  private readonly cancel = (event: PointerEvent): void => {
    this.hands.delete(event.pointerId);
    if (this.hands.size === 0) this.pressed = null;
    this.canvas.style.cursor = "";
  };

  private readonly leave = (): void => {
    if (this.hands.size === 0) this.setPointed(null);
  };

  /** As any part of a page scrolls: it moves, and at its end the page does. With Ctrl (and by two fingers on a pad) it zooms. */
  private readonly wheel = (event: WheelEvent): void => {
    if (this.view === null || this.layout === null) return;
    const unit = event.deltaMode === 1 ? LINE : event.deltaMode === 2 ? this.screen.height : 1;
    if (event.ctrlKey || event.metaKey) {
      event.preventDefault();
      this.zoomBy(Math.exp((-event.deltaY * unit) / 300), this.pointOf(event));
      return;
    }
    const sideways = event.shiftKey && event.deltaX === 0;
    const by = sideways
      ? { x: event.deltaY * unit, y: 0 }
      : { x: event.deltaX * unit, y: event.deltaY * unit };
    const view = moved(this.view, by, this.layout, this.screen);
    if (same(view, this.view)) return;
    event.preventDefault();
    this.look(view);
    this.setPointed(null);
  };

  private readonly key = (event: KeyboardEvent): void => {
    if (event.ctrlKey || event.metaKey || event.altKey || this.view === null || this.layout === null) return;
    const direction = ARROWS[event.key];
    if (direction !== undefined) {
      if (event.shiftKey) this.step(direction);
      else this.look(moved(this.view, arrow(direction), this.layout, this.screen));
    } else if (event.key === "+" || event.key === "=") this.larger();
    else if (event.key === "-" || event.key === "_") this.smaller();
    else if (event.key === "0" || event.key === "f") this.fit();
    else if (event.key === "Enter" || event.key === " ") {
      const target = this.selected === null || this.scene === null ? null : targetOf(this.scene, this.selected);
      if (target !== null) this.events.act(target, false);
    } else if (event.key === "Escape" && this.selected !== null) this.setSelected(null);
    else return;
    event.preventDefault();
    event.stopPropagation();
  };

  private readonly blur = (): void => this.setSelected(null);

  private step(direction: Direction): void {
    if (this.scene === null || this.layout === null || this.view === null) return;
    const next = stepFrom(this.scene, this.layout, this.selected, direction);
    this.setSelected(next);
    const at = next === null ? null : placeOf({ scene: this.scene, layout: this.layout }, next);
    if (at !== null) this.look(showing(this.view, at, this.layout, this.screen));
    if (next !== null) this.events.pointed(next, this.onScreen(next), true);
  }

  private point(at: Point): void {
    const target = this.targetAt(at);
    this.canvas.style.cursor = target === null || target.act === "none" ? "" : "pointer";
    this.setPointed(target === null || target.act === "none" ? null : target.place);
  }

  private targetAt(at: Point): Target | null {
    if (this.scene === null || this.layout === null || this.view === null) return null;
    return targetAt(this.scene, this.layout, toPlane(this.view, at));
  }

  private setPointed(place: Place | null): void {
    if (samePlace(place, this.pointedAt)) return;
    this.pointedAt = place;
    this.events.pointed(place, place === null ? null : this.onScreen(place), false);
    this.invalidate();
  }

  private setSelected(place: Place | null): void {
    if (samePlace(place, this.selected)) return;
    this.selected = place;
    if (place === null) this.events.pointed(null, null, true);
    this.invalidate();
  }

  private onScreen(place: Place): Rectangle | null {
    if (this.scene === null || this.layout === null || this.view === null) return null;
    const at = placeOf({ scene: this.scene, layout: this.layout }, place);
    if (at === null) return null;
    return { ...toScreen(this.view, at), width: at.width * this.view.zoom, height: at.height * this.view.zoom };
  }

  private keyOf(place: Place | null): { readonly key: string; readonly card: number | null } | null {
    const box = place === null ? undefined : this.scene?.boxes[place.box];
    return place === null || box === undefined ? null : { key: box.key, card: place.card };
  }

  private found(marked: { readonly key: string; readonly card: number | null } | null): Place | null {
    if (marked === null || this.scene === null) return null;
    const box = this.scene.boxes.findIndex((each) => each.key === marked.key);
    return box < 0 ? null : { box, card: this.scene.boxes[box]?.kind === "block" ? marked.card : null };
  }
}

function arrow(direction: Direction): Point {
  return {
    left: { x: -STEP, y: 0 },
    right: { x: STEP, y: 0 },
    up: { x: 0, y: -STEP },
    down: { x: 0, y: STEP },
  }[direction];
}

function samePlace(one: Place | null, other: Place | null): boolean {
  return one === other || (one !== null && other !== null && one.box === other.box && one.card === other.card);
}

/** What is worth looking at first: what failed, else what runs. */
export function focusOf(scene: Scene, layout: Layout): Point | null {
  for (const tone of ["bad", "active"] as const) {
    const at = scene.boxes.findIndex((box) => box.tone === tone);
    if (at >= 0) {
      return {
        x: (layout.x[at] as number) + (layout.widths[at] as number) / 2,
        y: (layout.y[at] as number) + (layout.heights[at] as number) / 2,
      };
    }
  }
  return null;
}

interface Laid {
  readonly scene: Scene;
  readonly layout: Layout;
}

/** The view in which a box that is in both layouts is where it was: the anchor, else what was nearest to the middle. */
export function anchored(view: Viewport, screen: Size, before: Laid, after: Laid, anchor: string | null): Viewport {
  const places = new Map(after.scene.boxes.map((box, at) => [box.key, at]));
  const middle = toPlane(view, { x: screen.width / 2, y: screen.height / 2 });
  let best: { readonly from: number; readonly to: number } | null = null;
  let least = Infinity;
  for (const [from, box] of before.scene.boxes.entries()) {
    const to = places.get(box.key);
    if (to === undefined) continue;
    if (box.key === anchor) {
      best = { from, to };
      break;
    }
    const distance = Math.hypot((before.layout.x[from] as number) - middle.x, (before.layout.y[from] as number) - middle.y);
    if (distance < least) [best, least] = [{ from, to }, distance];
  }
  if (best === null) return view;
  return {
    zoom: view.zoom,
    x: view.x + (after.layout.x[best.to] as number) - (before.layout.x[best.from] as number),
    y: view.y + (after.layout.y[best.to] as number) - (before.layout.y[best.from] as number),
  };
}
