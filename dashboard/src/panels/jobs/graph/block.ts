/** The members of a group that is unfolded: cards in rows and columns below a heading. Places of them, and back. */

import { firstWhere } from "./culling";
import type { Point, Rectangle, Size } from "./viewport";

export const CARD: Size = { width: 196, height: 46 };
export const CARD_GAP = 10;
export const BLOCK_PADDING = 12;
export const BLOCK_HEADING = 40;
/** The line at the bottom: how many are shown, and more of them. */
export const BLOCK_FOOTING = 38;
const MOST_COLUMNS = 100;

const STEP: Size = { width: CARD.width + CARD_GAP, height: CARD.height + CARD_GAP };

/** Of how many there are in all, and not of how many are shown: when more are shown, none of the others moves. */
export function blockColumns(count: number): number {
  return Math.max(2, Math.min(MOST_COLUMNS, Math.ceil(Math.sqrt(count * 0.45))));
}

export function blockSize(shown: number, columns: number, hasFooting: boolean): Size {
  const rows = Math.max(1, Math.ceil(shown / columns));
  return {
    width: columns * STEP.width - CARD_GAP + 2 * BLOCK_PADDING,
    height: BLOCK_HEADING + rows * STEP.height - CARD_GAP + BLOCK_PADDING + (hasFooting ? BLOCK_FOOTING : 0),
  };
}

/** The corner of a card, from the corner of the block. */
export function cardPlace(at: number, columns: number): Point {
  return {
    x: BLOCK_PADDING + (at % columns) * STEP.width,
    y: BLOCK_HEADING + Math.floor(at / columns) * STEP.height,
  };
}

/** Which card is at a point of the block, or null: between cards, in the heading, or behind the last. */
export function cardAt(point: Point, columns: number, shown: number): number | null {
  const x = point.x - BLOCK_PADDING;
  const y = point.y - BLOCK_HEADING;
  if (x < 0 || y < 0) return null;
  const column = Math.floor(x / STEP.width);
  const row = Math.floor(y / STEP.height);
  if (column >= columns || x - column * STEP.width > CARD.width || y - row * STEP.height > CARD.height) return null;
  const at = row * columns + column;
  return at < shown ? at : null;
}

export interface CardRange {
  readonly fromRow: number;
  readonly toRow: number;
  readonly fromColumn: number;
  readonly toColumn: number;
}

/** Rows and columns that meet a part of the block (in its own coordinates); ends are not part of it. */
export function cardsIn(part: Rectangle, columns: number, shown: number): CardRange {
  const rows = Math.ceil(shown / columns);
  const range = (low: number, high: number, step: number, size: number, count: number): readonly [number, number] => [
    firstWhere(count, (at) => at * step + size >= low),
    firstWhere(count, (at) => at * step > high),
  ];
  const left = part.x - BLOCK_PADDING;
  const top = part.y - BLOCK_HEADING;
  const [fromColumn, toColumn] = range(left, left + part.width, STEP.width, CARD.width, columns);
  const [fromRow, toRow] = range(top, top + part.height, STEP.height, CARD.height, rows);
  return { fromRow, toRow, fromColumn, toColumn };
}
