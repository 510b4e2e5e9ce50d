/** Who lays out: a small graph at once, a large one in a worker. What is asked for last is what comes. */

import { layOut, type Layout } from "./layout";
import type { LayoutAsked, LayoutMade } from "./layout.worker";
import type { Scene } from "./scene";

// Below so many boxes and edges it takes less time than a frame.
const AT_ONCE = 600;

export class Layouter {
  private worker: Worker | null = null;
  private number = 0;

  /** Calls `done` at once or later; never for a scene that another was asked for after. */
  lay(scene: Scene, done: (layout: Layout) => void): void {
    const number = ++this.number;
    const input = scene.layoutInput();
    if (scene.boxes.length + scene.edges.length <= AT_ONCE || typeof Worker === "undefined") {
      done(layOut(input));
      return;
    }
    this.worker ??= new Worker(new URL("./layout.worker.ts", import.meta.url), { type: "module" });
    this.worker.onmessage = (event: MessageEvent<LayoutMade>): void => {
      if (event.data.number === this.number) done(event.data.layout);
    };
    this.worker.onerror = (): void => {
      // A page that may not start workers still shows its graph.
      this.end();
      if (number === this.number) done(layOut(input));
    };
    const asked: LayoutAsked = { number, input };
    this.worker.postMessage(asked);
  }

  stop(): void {
    this.number++;
    this.end();
  }

  private end(): void {
    this.worker?.terminate();
    this.worker = null;
  }
}
