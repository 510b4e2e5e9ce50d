/** Text that has to fit into a width: cut by halves, and remembered, for measuring is what drawing text costs most. */

const MOST = 20_000;

export class FittingText {
  private readonly known = new Map<string, string>();

  constructor(private readonly measure: (text: string, font: string) => number) {}

  fit(text: string, font: string, width: number): string {
    const key = `${font}\n${Math.round(width)}\n${text}`;
    const found = this.known.get(key);
    if (found !== undefined) return found;
    if (this.known.size >= MOST) this.known.clear();
    const cut = this.cut(text, font, width);
    this.known.set(key, cut);
    return cut;
  }

  private cut(text: string, font: string, width: number): string {
    if (this.measure(text, font) <= width) return text;
    let low = 0;
    let high = text.length - 1;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (this.measure(`${text.slice(0, middle)}…`, font) <= width) low = middle;
      else high = middle - 1;
    }
    return low === 0 ? "…" : `${text.slice(0, low).trimEnd()}…`;
  }
}
