/** Gathers what arrives and hands it over once a frame: 500 messages a second are at most 60 renderings. */

export interface Frames {
  request(act: () => void): number;
  cancel(handle: number): void;
}

/** A page in the background gets no frames, and must not let everything pile up until it is looked at again. */
const HIDDEN_EACH = 1000;

export const animationFrames: Frames = {
  request: (act) => (document.hidden ? -window.setTimeout(act, HIDDEN_EACH) : requestAnimationFrame(act)),
  cancel: (handle) => (handle < 0 ? window.clearTimeout(-handle) : cancelAnimationFrame(handle)),
};

export class Gatherer<Item> {
  private waiting: Item[] = [];
  private handle: number | null = null;

  constructor(
    private readonly deliver: (items: readonly Item[]) => void,
    private readonly frames: Frames = animationFrames,
  ) {}

  add(item: Item): void {
    this.waiting.push(item);
    this.handle ??= this.frames.request(this.flush);
  }

  readonly flush = (): void => {
    if (this.handle !== null) this.frames.cancel(this.handle);
    this.handle = null;
    if (this.waiting.length === 0) return;
    const items = this.waiting;
    this.waiting = [];
    this.deliver(items);
  };

  stop(): void {
    if (this.handle !== null) this.frames.cancel(this.handle);
    this.handle = null;
    this.waiting = [];
  }
}
