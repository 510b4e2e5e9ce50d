/**
 * A list that stays where it is while rows arrive. What is shown is never moved; what came meanwhile is counted, and
 * shown when somebody asks for it.
 */

export interface Arrivals {
  readonly n: number;
  /** There may be more than were looked at. */
  readonly more: boolean;
}

export const NONE: Arrivals = { n: 0, more: false };

interface Known {
  readonly shown: ReadonlySet<number>;
  /** Nothing was behind the last that is shown. */
  readonly isWhole: boolean;
}

interface Peeked {
  readonly ids: readonly number[];
  /** There are others behind them. */
  readonly hasMore: boolean;
}

/**
 * How many stand above what is shown, in a new look at the top of the list.
 * Rows behind the last one that is known are not new: they came up because others went away.
 */
export function arrivalsOf(known: Known, peeked: Peeked): Arrivals {
  const last = peeked.ids.findLastIndex((id) => known.shown.has(id));
  if (last === -1) return { n: peeked.ids.length, more: peeked.hasMore };
  const above = known.isWhole ? peeked.ids : peeked.ids.slice(0, last);
  return { n: above.filter((id) => !known.shown.has(id)).length, more: false };
}

/** The rows with what is now known of them, in the places where they were. */
export function renewed<Row extends { readonly id: number }>(rows: readonly Row[], newer: ReadonlyMap<number, Row>): readonly Row[] {
  if (!rows.some((row) => newer.has(row.id))) return rows;
  return rows.map((row) => newer.get(row.id) ?? row);
}

/** A row that is on two pages (it moved between the two reads) is shown once, where it was first. */
export function once<Row extends { readonly id: number }>(rows: readonly Row[]): readonly Row[] {
  const seen = new Set<number>();
  return rows.filter((row) => !seen.has(row.id) && seen.add(row.id));
}
