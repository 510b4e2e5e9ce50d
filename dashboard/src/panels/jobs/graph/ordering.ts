/** The order of the vertices in each column, so that few edges cross. */

/** Neighbours of each vertex, one list behind the other: those of v are targets[starts[v]] to targets[starts[v + 1] - 1]. */
export interface Neighbours {
  readonly starts: Int32Array;
  readonly targets: Int32Array;
}

export function neighbours(count: number, from: ArrayLike<number>, to: ArrayLike<number>): Neighbours {
  const starts = new Int32Array(count + 1);
  for (let at = 0; at < from.length; at++) {
    const next = (from[at] as number) + 1;
    starts[next] = (starts[next] as number) + 1;
  }
  for (let at = 0; at < count; at++) starts[at + 1] = (starts[at + 1] as number) + (starts[at] as number);
  const filled = starts.slice(0, count);
  const targets = new Int32Array(from.length);
  for (let at = 0; at < from.length; at++) {
    const vertex = from[at] as number;
    const place = filled[vertex] as number;
    targets[place] = to[at] as number;
    filled[vertex] = place + 1;
  }
  return { starts, targets };
}

const SWEEPS = 8;
// Above so many edges they are not counted: what the last sweep gives is taken.
const MOST_COUNTED = 60_000;

/** Changes `columns` in place: each vertex goes to the mean place of its neighbours, column by column, to and fro. */
export function order(columns: Int32Array[], up: Neighbours, down: Neighbours): void {
  const places = new Float64Array(up.starts.length - 1);
  for (const column of columns) rank(column, places);
  const counts = down.targets.length <= MOST_COUNTED;
  let best = counts ? crossings(columns, down, places) : Infinity;
  if (best === 0) return;
  let kept = columns.map((column) => column.slice());
  for (let sweep = 0; sweep < SWEEPS; sweep++) {
    const forth = sweep % 2 === 0;
    for (let step = 1; step < columns.length; step++) {
      const column = columns[forth ? step : columns.length - 1 - step];
      if (column === undefined) continue;
      sortByMean(column, forth ? up : down, places);
      rank(column, places);
    }
    if (!counts) {
      kept = columns.map((column) => column.slice());
      continue;
    }
    const found = crossings(columns, down, places);
    if (found < best) {
      best = found;
      kept = columns.map((column) => column.slice());
      if (best === 0) break;
    }
  }
  for (const [at, column] of kept.entries()) columns[at] = column;
}

function rank(column: Int32Array, places: Float64Array): void {
  for (let at = 0; at < column.length; at++) places[column[at] as number] = at;
}

function sortByMean(column: Int32Array, { starts, targets }: Neighbours, places: Float64Array): void {
  const keys = new Map<number, number>();
  for (const vertex of column) {
    const start = starts[vertex] as number;
    const end = starts[vertex + 1] as number;
    let sum = 0;
    for (let at = start; at < end; at++) sum += places[targets[at] as number] as number;
    // Without neighbours on this side it stays where it is.
    keys.set(vertex, end > start ? sum / (end - start) : (places[vertex] as number));
  }
  const sorted = [...column].sort((one, other) => (keys.get(one) as number) - (keys.get(other) as number));
  column.set(sorted);
}

/** How many pairs of edges between neighbouring columns cross. */
export function crossings(columns: readonly Int32Array[], down: Neighbours, places: Float64Array): number {
  let sum = 0;
  for (const [at, column] of columns.entries()) {
    const next = columns[at + 1];
    if (next !== undefined) sum += crossingsBetween(column, next.length, down, places);
  }
  return sum;
}

/** Counts inversions with a tree of sums: as many steps as edges, times the logarithm of the column. */
function crossingsBetween(column: Int32Array, width: number, { starts, targets }: Neighbours, places: Float64Array): number {
  const tree = new Int32Array(width + 1);
  let added = 0;
  let sum = 0;
  for (const vertex of column) {
    const ends = Array.from(targets.subarray(starts[vertex], starts[vertex + 1]), (end) => places[end] as number);
    // Those that share their beginning do not cross: all are counted before any is added.
    for (const end of ends) {
      let before = 0;
      for (let at = end + 1; at > 0; at -= at & -at) before += tree[at] as number;
      sum += added - before;
    }
    for (const end of ends) {
      for (let at = end + 1; at <= width; at += at & -at) tree[at] = (tree[at] as number) + 1;
      added++;
    }
  }
  return sum;
}
