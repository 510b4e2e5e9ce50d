/** Lays out beside the page, so that it goes on moving meanwhile. */

import { layOut, type Layout, type LayoutInput } from "./layout";

export interface LayoutAsked {
  readonly number: number;
  readonly input: LayoutInput;
}

export interface LayoutMade {
  readonly number: number;
  readonly layout: Layout;
}

self.onmessage = (event: MessageEvent<LayoutAsked>): void => {
  const { number, input } = event.data;
  const made: LayoutMade = { number, layout: layOut(input) };
  self.postMessage(made);
};
