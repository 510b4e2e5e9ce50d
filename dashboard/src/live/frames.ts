/** Gathers what arrives and hands it over once a frame: 500 messages a second are at most 60 renderings. */

export interface Frames {
  /** Gives what takes it back. */
  request(act: () => void): () => void;
}

/** A page in the background gets no frames, and must not let everything pile up until it is looked at again. */
const LATEST = 1000;

export const animationFrames: Frames = {
  request: (act) => {
    // Both, and the first of them counts: a page that is hidden now may have been seen when the frame was asked for.
    const frame = requestAnimationFrame(act);
    const timer = window.setTimeout(act, LATEST);
    return () => {
      cancelAnimationFrame(frame);
      window.clearTimeout(timer);
    };
  },
};

export class Gatherer<Item> {
  private waiting: Item[] = [];
  private takeBack: (() => void) | null = null;

  constructor(
    private readonly deliver: (items: readonly Item[]) => void,
    private readonly frames: Frames = animationFrames,
  ) {}

  add(item: Item): void {
    this.waiting.push(item);
    this.takeBack ??= this.frames.request(this.flush);
  }

  readonly flush = (): void => {
    this.takeBack?.();
    this.takeBack = null;
    if (this.waiting.length === 0) return;
    const items = this.waiting;
    this.waiting = [];
    this.deliver(items);
  };

  stop(): void {
    this.takeBack?.();
    this.takeBack = null;
    this.waiting = [];
  }
}
