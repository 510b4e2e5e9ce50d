/** Puts things below each other, in their order, each as near as may be to where it would like to be. */

/**
 * The tops that minimise the weighted squares of the distances to `wanted`, with at least `gap` between neighbours.
 *
 * Taking away what stands above each turns «no overlap» into «never falling», which is isotonic regression: neighbours
 * that would overlap become one pool with one mean. Linear in the number of things.
 */
export function stacked(
  wanted: ArrayLike<number>,
  heights: ArrayLike<number>,
  gap: number,
  weights?: ArrayLike<number>,
): Float64Array {
  const n = wanted.length;
  const means = new Float64Array(n);
  const weight = new Float64Array(n);
  const sizes = new Int32Array(n);
  let pools = 0;
  let above = 0;
  for (let at = 0; at < n; at++) {
    means[pools] = (wanted[at] ?? 0) - above;
    weight[pools] = weights?.[at] ?? 1;
    sizes[pools] = 1;
    pools++;
    while (pools > 1 && (means[pools - 2] as number) > (means[pools - 1] as number)) {
      const upper = weight[pools - 2] as number;
      const lower = weight[pools - 1] as number;
      means[pools - 2] =
        ((means[pools - 2] as number) * upper + (means[pools - 1] as number) * lower) / (upper + lower);
      weight[pools - 2] = upper + lower;
      sizes[pools - 2] = (sizes[pools - 2] as number) + (sizes[pools - 1] as number);
      pools--;
    }
    above += (heights[at] ?? 0) + gap;
  }
  const tops = new Float64Array(n);
  above = 0;
  for (let pool = 0, at = 0; pool < pools; pool++) {
    for (let left = sizes[pool] as number; left > 0; left--, at++) {
      tops[at] = (means[pool] as number) + above;
      above += (heights[at] ?? 0) + gap;
    }
  }
  return tops;
}
