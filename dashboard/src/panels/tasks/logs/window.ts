/** Which rows of a long list are drawn. Rows may be of several heights: a long line takes more than one row of text. */

export interface Heights {
  /** offsets[n] is where row n begins; the last is where all end. */
  readonly offsets: Float64Array;
}

/** How many rows of text a line takes where `columns` characters fit. */
export function rowsOf(text: string, columns: number): number {
  if (columns <= 0) return 1;
  let widest = 0;
  // Wide characters (Chinese, emoji) take two; almost all lines have none, and then the length is the width.
  if (/^[\u0020-\u024f]*$/.test(text)) widest = text.length;
  else for (const character of text) widest += (character.codePointAt(0) ?? 0) > 0x10ff ? 2 : character === "\t" ? 8 : 1;
  return Math.max(1, Math.ceil(widest / columns));
}

/** Where each row begins. Rows of `before` that are still the same ones are not computed again. */
export function measure(count: number, heightOf: (at: number) => number, before?: Heights): Heights {
  const offsets = new Float64Array(count + 1);
  const known = before === undefined ? 0 : Math.min(count, before.offsets.length - 1);
  if (before !== undefined) offsets.set(before.offsets.subarray(0, known + 1));
  for (let at = known; at < count; at += 1) offsets[at + 1] = (offsets[at] ?? 0) + heightOf(at);
  return { offsets };
}

export function totalOf({ offsets }: Heights): number {
  return offsets[offsets.length - 1] ?? 0;
}

export interface Shown {
  readonly first: number;
  /** Behind the last. */
  readonly end: number;
  /** Room that those above and below take. */
  readonly above: number;
  readonly below: number;
}

/** Rows between `top` and `top + height`, and some more on both sides so that scrolling shows no gaps. */
export function shownOf(heights: Heights, top: number, height: number, spare = 20): Shown {
  const { offsets } = heights;
  const count = offsets.length - 1;
  const first = Math.max(0, rowAt(heights, top) - spare);
  const end = Math.min(count, rowAt(heights, top + height) + 1 + spare);
  return { first, end, above: offsets[first] ?? 0, below: totalOf(heights) - (offsets[end] ?? 0) };
}

/** The row at that height. */
export function rowAt({ offsets }: Heights, height: number): number {
  let low = 0;
  let high = Math.max(0, offsets.length - 2);
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if ((offsets[middle] ?? 0) <= height) low = middle;
    else high = middle - 1;
  }
  return low;
}
