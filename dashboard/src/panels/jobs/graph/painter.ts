/** Draws what is seen of a graph, as finely as its size on the screen allows. */

import { shortNumber, toneOf, type Tone } from "@/ui";

import { GLYPHS } from "../glyphs";
import type { Member } from "../outline";
import { TONES, tonesOf, type States } from "../states";
import { BLOCK_FOOTING, BLOCK_HEADING, BLOCK_PADDING, CARD, cardPlace, cardsIn } from "./block";
import { BlockImages } from "./blockImages";
import { eachBoxIn, eachSegmentIn } from "./culling";
import { FittingText } from "./fitting";
import type { Layout } from "./layout";
import type { Palette } from "./palette";
import type { BlockBox, Box, GroupBox, Place, Scene, TaskBox } from "./scene";
import { seen, type Point, type Rectangle, type Size, type Viewport } from "./viewport";
import { groupLine, memberLine, singleLine } from "./words";

/** From here on a card has letters; below, a shape and a colour; below that, a colour. */
const LETTERS = 0.5;
const SHAPES = 0.2;
/** Cards of a block are one picture, a pixel each, below this. */
const PICTURE = 0.1;
const MOST_SEGMENTS = 1500;
const RADIUS = 7;
const DASHES: readonly (readonly number[])[] = [[], [7, 5], [2, 4]];

export interface Marks {
  /** What is pointed at. */
  readonly pointed: Place | null;
  /** What the keys have come to. */
  readonly selected: Place | null;
}

export interface Frame {
  readonly scene: Scene;
  readonly layout: Layout;
  readonly view: Viewport;
  readonly screen: Size;
  /** Pixels of the canvas for one of the screen. */
  readonly density: number;
  readonly palette: Palette;
  readonly marks: Marks;
  readonly now: number;
  /** Groups of which more is being read. */
  readonly reading: ReadonlySet<string>;
}

export class Painter {
  private readonly text: FittingText;
  private readonly glyphs = new Map<Tone, Path2D>();
  private readonly images = new BlockImages();

  constructor(private readonly context: CanvasRenderingContext2D) {
    this.text = new FittingText((text, font) => {
      context.font = font;
      return context.measureText(text).width;
    });
    for (const tone of TONES) this.glyphs.set(tone, new Path2D(GLYPHS[tone]));
  }

  paint(frame: Frame): void {
    const { view, screen, density, palette, layout, scene } = frame;
    const { context } = this;
    context.setTransform(density, 0, 0, density, 0, 0);
    context.fillStyle = palette.ground;
    context.fillRect(0, 0, screen.width, screen.height);
    const scale = view.zoom * density;
    context.setTransform(scale, 0, 0, scale, -view.x * scale, -view.y * scale);
    const part = seen(view, screen);
    this.images.keep(scene);
    this.paintEdges(frame, part);
    const tasks: number[] = [];
    eachBoxIn(layout, part, (at) => {
      const box = scene.boxes[at];
      if (box === undefined) return;
      if (box.kind === "task") tasks.push(at);
      else if (box.kind === "group") this.paintGroup(frame, at, box);
      else this.paintBlock(frame, at, box, part);
    });
    if (view.zoom >= LETTERS) {
      for (const at of tasks) this.paintCard(frame, corner(layout, at), scene.boxes[at] as TaskBox);
    } else {
      const cards = tasks.map((at) => ({ ...corner(layout, at), tone: (scene.boxes[at] as TaskBox).tone }));
      this.paintSmall(frame, cards);
    }
    this.paintMarks(frame);
  }

  private paintEdges(frame: Frame, part: Rectangle): void {
    const { layout, view, palette } = frame;
    const { places, kinds, ends } = layout.segments;
    const lines: number[][] = [[], [], []];
    eachSegmentIn(layout, part, MOST_SEGMENTS, (segment) => lines[kinds[segment] as number]?.push(segment));
    const { context } = this;
    context.lineWidth = Math.min(1.5, Math.max(1.25, 0.6 / view.zoom));
    const curved = view.zoom >= SHAPES;
    const left = part.x;
    const right = part.x + part.width;
    for (const [kind, segments] of lines.entries()) {
      if (segments.length === 0) continue;
      const colour = palette.edges[kind] ?? palette.strong;
      context.strokeStyle = colour;
      context.setLineDash(view.zoom >= SHAPES ? [...(DASHES[kind] ?? [])] : []);
      context.beginPath();
      for (const segment of segments) {
        const at = segment * 4;
        const x1 = places[at] as number;
        const y1 = places[at + 1] as number;
        const x2 = places[at + 2] as number;
        const y2 = places[at + 3] as number;
        if (x2 > x1 && (x1 > right || x2 < left)) continue;
        context.moveTo(x1, y1);
        if (!curved || Math.abs(y2 - y1) < 0.5) context.lineTo(x2, y2);
        else {
          const bend = Math.max(24, Math.abs(x2 - x1) / 2);
          context.bezierCurveTo(x1 + bend, y1, x2 - bend, y2, x2, y2);
        }
      }
      context.stroke();
      context.setLineDash([]);
      if (view.zoom < 0.3) continue;
      context.fillStyle = colour;
      context.beginPath();
      for (const segment of segments) {
        if (ends[segment] !== 1) continue;
        const x = places[segment * 4 + 2] as number;
        const y = places[segment * 4 + 3] as number;
        context.moveTo(x, y);
        context.lineTo(x - 8, y - 4);
        context.lineTo(x - 8, y + 4);
        context.closePath();
      }
      context.fill();
    }
  }

  /** A task with everything that is known of it. */
  private paintCard(frame: Frame, at: Point, box: TaskBox): void {
    const line = box.member === null ? singleLine(box.group) : memberLine(box.member, frame.now);
    this.paintLettered(frame, at, box.name, line, box.tone);
  }

  private paintLettered(frame: Frame, { x, y }: Point, name: string, line: string, tone: Tone): void {
    const { palette } = frame;
    const { context } = this;
    const colours = palette.tones[tone];
    context.beginPath();
    context.roundRect(x, y, CARD.width, CARD.height, RADIUS);
    context.fillStyle = palette.surface;
    context.fill();
    context.beginPath();
    context.roundRect(x, y, 32, CARD.height, [RADIUS, 0, 0, RADIUS]);
    context.fillStyle = colours.tint;
    context.fill();
    context.beginPath();
    context.roundRect(x, y, CARD.width, CARD.height, RADIUS);
    context.lineWidth = 1;
    context.strokeStyle = tone === "bad" || tone === "active" || tone === "warn" ? colours.ink : palette.strong;
    context.stroke();
    this.paintGlyph(x + 8, y + CARD.height / 2 - 8, 16, tone, colours.ink);
    this.write(name, x + 40, y + 19, CARD.width - 48, `600 13px ${palette.font}`, palette.text);
    this.write(line, x + 40, y + 35, CARD.width - 48, `11.5px ${palette.font}`, palette.muted);
  }

  /** Cards that are too small for letters. */
  private paintSmall(frame: Frame, cards: readonly (Point & { readonly tone: Tone })[]): void {
    const { palette, view } = frame;
    const { context } = this;
    const withShapes = view.zoom >= SHAPES;
    for (const tone of TONES) {
      const colours = palette.tones[tone];
      const own = cards.filter((card) => card.tone === tone);
      if (own.length === 0) continue;
      context.fillStyle = withShapes ? colours.tint : colours.fill;
      for (const card of own) context.fillRect(card.x, card.y, CARD.width, CARD.height);
      if (!withShapes) continue;
      context.strokeStyle = colours.ink;
      context.lineWidth = 1 / view.zoom;
      context.beginPath();
      for (const card of own) context.rect(card.x, card.y, CARD.width, CARD.height);
      context.stroke();
      for (const card of own) {
        this.paintGlyph(card.x + CARD.width / 2 - 14, card.y + CARD.height / 2 - 14, 28, tone, colours.ink);
      }
    }
  }

  private paintGroup(frame: Frame, at: number, box: GroupBox): void {
    const { palette, layout, view } = frame;
    const { context } = this;
    const { x, y } = corner(layout, at);
    const width = (layout.widths[at] as number) - 8;
    const height = (layout.heights[at] as number) - 8;
    const colours = palette.tones[box.tone];
    if (view.zoom < SHAPES) {
      this.paintParts(frame, { x, y, width: width + 8, height: height + 8 }, box.group.states, box.group.count);
      return;
    }
    // Two sheets behind the first: there are many.
    context.lineWidth = 1;
    context.strokeStyle = palette.strong;
    context.fillStyle = palette.sunken;
    for (const by of [8, 4]) {
      context.beginPath();
      context.roundRect(x + by, y + by, width, height, RADIUS);
      context.fill();
      context.stroke();
    }
    context.beginPath();
    context.roundRect(x, y, width, height, RADIUS);
    context.fillStyle = palette.surface;
    context.fill();
    context.strokeStyle = box.tone === "bad" ? colours.ink : palette.strong;
    context.stroke();
    if (view.zoom < LETTERS) {
      this.paintGlyph(x + 8, y + 6, 26, box.tone, colours.ink);
      this.paintParts(frame, { x: x + 8, y: y + height - 20, width: width - 16, height: 14 }, box.group.states, box.group.count);
      return;
    }
    this.paintGlyph(x + 9, y + 7, 15, box.tone, colours.ink);
    const count = `× ${box.group.count.toLocaleString()}`;
    const countFont = `600 12px ${palette.font}`;
    context.font = countFont;
    const countWidth = context.measureText(count).width;
    this.write(box.name, x + 31, y + 19, width - 31 - countWidth - 36, `600 13px ${palette.font}`, palette.text);
    this.write(count, x + width - countWidth - 28, y + 19, countWidth + 2, countFont, palette.muted);
    this.paintFold(x + width - 22, y + 7, true, palette);
    this.paintParts(frame, { x: x + 10, y: y + 28, width: width - 20, height: 8 }, box.group.states, box.group.count);
    this.write(groupLine(box.group), x + 10, y + 52, width - 20, `11.5px ${palette.font}`, palette.muted);
  }

  /** A bar of how many are in which state. */
  private paintParts(frame: Frame, place: Rectangle, states: States, total: number): void {
    const { palette, view } = frame;
    const { context } = this;
    context.fillStyle = palette.sunken;
    context.fillRect(place.x, place.y, place.width, place.height);
    let x = place.x;
    for (const { tone, count } of tonesOf(states)) {
      const width = (place.width * count) / Math.max(1, total);
      context.fillStyle = palette.tones[tone].fill;
      // Whatever there is one of can be seen.
      context.fillRect(x, place.y, Math.max(width, 1 / view.zoom), place.height);
      x += width;
    }
    context.strokeStyle = palette.strong;
    context.lineWidth = Math.min(1, 0.75 / view.zoom);
    context.strokeRect(place.x, place.y, place.width, place.height);
  }

  private paintBlock(frame: Frame, at: number, box: BlockBox, part: Rectangle): void {
    const { palette, layout, view } = frame;
    const { context } = this;
    const { x, y } = corner(layout, at);
    const width = layout.widths[at] as number;
    const height = layout.heights[at] as number;
    context.beginPath();
    context.roundRect(x, y, width, height, RADIUS);
    context.fillStyle = palette.sunken;
    context.fill();
    context.lineWidth = Math.max(1, 1 / view.zoom);
    context.strokeStyle = palette.strong;
    context.stroke();
    this.paintBlockHeading(frame, { x, y, width, height }, box, part);
    if (view.zoom < PICTURE) {
      const last = cardPlace(box.members.length - 1, box.columns);
      const image = this.images.of(box, palette);
      if (image === null) return;
      context.imageSmoothingEnabled = view.zoom * CARD.height < 2;
      const target = { width: width - 2 * BLOCK_PADDING, height: last.y + CARD.height - BLOCK_HEADING };
      context.drawImage(image, x + BLOCK_PADDING, y + BLOCK_HEADING, target.width, target.height);
      return;
    }
    const own = { ...part, x: part.x - x, y: part.y - y };
    const range = cardsIn(own, box.columns, box.members.length);
    const small: (Point & { readonly tone: Tone })[] = [];
    for (let row = range.fromRow; row < range.toRow; row++) {
      for (let column = range.fromColumn; column < range.toColumn; column++) {
        const card = row * box.columns + column;
        const member = box.members[card];
        if (member === undefined) continue;
        const place = cardPlace(card, box.columns);
        const cornerOf = { x: x + place.x, y: y + place.y };
        if (view.zoom >= LETTERS) this.paintMember(frame, cornerOf, member);
        else small.push({ ...cornerOf, tone: toneOf(member.state) });
      }
    }
    if (small.length > 0) this.paintSmall(frame, small);
  }

  private paintMember(frame: Frame, at: Point, member: Member): void {
    // In a block all are of one task: the label says which one it is, else the id.
    const name = member.name === member.task ? `#${member.id}` : member.name;
    this.paintLettered(frame, at, name, memberLine(member, frame.now), toneOf(member.state));
  }

  /** Its words stay in sight while one looks at a part of a large block. */
  private paintBlockHeading(frame: Frame, block: Rectangle, box: BlockBox, part: Rectangle): void {
    const { palette, view, reading } = frame;
    if (view.zoom < 0.3) return;
    const left = Math.min(Math.max(block.x, part.x), block.x + block.width - 260) + BLOCK_PADDING;
    this.paintFold(left, block.y + 13, false, palette);
    const title = `${box.name} × ${box.group.count.toLocaleString()}`;
    this.write(title, left + 24, block.y + 26, 220, `600 13px ${palette.font}`, palette.text);
    if (block.width > 520) {
      const room = Math.min(block.width, part.width) - 280;
      this.write(groupLine(box.group), left + 256, block.y + 26, room, `11.5px ${palette.font}`, palette.muted);
    }
    if (!box.hasMore) return;
    const foot = block.y + block.height - BLOCK_FOOTING;
    const isReading = reading.has(box.key);
    const shown = `${shortNumber(box.members.length)} of ${box.group.count.toLocaleString()}`;
    const words = isReading ? `Reading… ${shown}` : `Show more (${shown})`;
    const colour = isReading ? palette.muted : palette.accent;
    this.write(words, left, foot + 24, 260 - 2 * BLOCK_PADDING, `600 13px ${palette.font}`, colour);
  }

  private paintFold(x: number, y: number, folded: boolean, palette: Palette): void {
    const { context } = this;
    context.lineWidth = 1;
    context.strokeStyle = palette.accent;
    context.beginPath();
    context.roundRect(x, y, 14, 14, 3);
    context.moveTo(x + 3.5, y + 7);
    context.lineTo(x + 10.5, y + 7);
    if (folded) {
      context.moveTo(x + 7, y + 3.5);
      context.lineTo(x + 7, y + 10.5);
    }
    context.stroke();
  }

  private paintGlyph(x: number, y: number, size: number, tone: Tone, colour: string): void {
    const { context } = this;
    const glyph = this.glyphs.get(tone);
    if (glyph === undefined) return;
    context.save();
    context.translate(x, y);
    context.scale(size / 16, size / 16);
    context.lineWidth = 1.6;
    context.lineCap = "round";
    context.lineJoin = "round";
    context.strokeStyle = colour;
    context.stroke(glyph);
    context.restore();
  }

  private write(text: string, x: number, y: number, width: number, font: string, colour: string): void {
    if (width <= 8) return;
    const fitting = this.text.fit(text, font, width);
    this.context.font = font;
    this.context.fillStyle = colour;
    this.context.fillText(fitting, x, y);
  }

  /** Rings around what is pointed at and selected, and its own edges over everything. */
  private paintMarks(frame: Frame): void {
    const { marks, palette, scene, view } = frame;
    const { context } = this;
    for (const place of [marks.pointed, marks.selected]) {
      if (place === null) continue;
      const at = placeOf(frame, place);
      if (at === null) continue;
      const box = scene.boxes[place.box];
      if (box !== undefined) this.paintNeighbours(frame, box, place, at);
      context.strokeStyle = palette.focus;
      context.lineWidth = Math.max(2, 2 / view.zoom);
      context.beginPath();
      context.roundRect(at.x - 3, at.y - 3, at.width + 6, at.height + 6, RADIUS + 2);
      context.stroke();
    }
  }

  private paintNeighbours(frame: Frame, box: Box, place: Place, at: Rectangle): void {
    const { scene, palette, view } = frame;
    const id = box.kind === "task" ? box.id : box.kind === "block" && place.card !== null ? box.members[place.card]?.id : undefined;
    if (id === undefined) return;
    const { context } = this;
    context.lineWidth = Math.max(2, 2 / view.zoom);
    context.strokeStyle = palette.focus;
    // Names that it crosses can still be read.
    context.globalAlpha = 0.5;
    context.beginPath();
    for (const neighbour of scene.neighbours(id).slice(0, 200)) {
      const other = scene.placeOf(neighbour.id);
      const there = other === undefined ? null : placeOf(frame, other);
      if (there === null) continue;
      const [from, to] = neighbour.isUpstream ? [there, at] : [at, there];
      const x1 = from.x + from.width;
      const y1 = from.y + from.height / 2;
      const y2 = to.y + to.height / 2;
      const bend = Math.max(24, Math.abs(to.x - x1) / 2);
      context.moveTo(x1, y1);
      context.bezierCurveTo(x1 + bend, y1, to.x - bend, y2, to.x, y2);
    }
    context.stroke();
    context.globalAlpha = 1;
  }
}

function corner(layout: Layout, box: number): Point {
  return { x: layout.x[box] as number, y: layout.y[box] as number };
}

/** Where a box, or a card of a block, is in the plane. */
export function placeOf(frame: Pick<Frame, "scene" | "layout">, place: Place): Rectangle | null {
  const { layout, scene } = frame;
  const box = scene.boxes[place.box];
  if (box === undefined || place.box >= layout.x.length) return null;
  const at = corner(layout, place.box);
  if (place.card === null || box.kind !== "block") {
    return { ...at, width: layout.widths[place.box] as number, height: layout.heights[place.box] as number };
  }
  const card = cardPlace(place.card, box.columns);
  return { x: at.x + card.x, y: at.y + card.y, ...CARD };
}
