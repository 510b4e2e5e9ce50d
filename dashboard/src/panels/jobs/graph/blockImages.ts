/** A large block from afar: a picture with a pixel for each card. Drawing it costs the same for a hundred and a hundred thousand. */

import { toneOf } from "@/ui";

import { TONES } from "../states";
import type { Member } from "../outline";
import { channels, type Palette } from "./palette";
import type { BlockBox, Scene } from "./scene";

interface Kept {
  readonly members: readonly Member[];
  readonly palette: Palette;
  readonly canvas: HTMLCanvasElement;
}

export class BlockImages {
  private readonly kept = new Map<string, Kept>();
  private shown: Scene | null = null;

  /** Forgets pictures of blocks that are no more. */
  keep(scene: Scene): void {
    if (this.shown === scene) return;
    this.shown = scene;
    const keys = new Set(scene.boxes.flatMap((box) => (box.kind === "block" ? [box.key] : [])));
    for (const key of this.kept.keys()) if (!keys.has(key)) this.kept.delete(key);
  }

  of(box: BlockBox, palette: Palette): HTMLCanvasElement | null {
    const found = this.kept.get(box.key);
    if (found !== undefined && found.members === box.members && found.palette === palette) return found.canvas;
    const canvas = paintPixels(box, palette, found?.canvas);
    if (canvas !== null) this.kept.set(box.key, { members: box.members, palette, canvas });
    return canvas;
  }
}

function paintPixels(box: BlockBox, palette: Palette, again: HTMLCanvasElement | undefined): HTMLCanvasElement | null {
  const rows = Math.ceil(box.members.length / box.columns);
  if (rows === 0) return null;
  const canvas = again ?? document.createElement("canvas");
  canvas.width = box.columns;
  canvas.height = rows;
  const context = canvas.getContext("2d");
  if (context === null) return null;
  const image = context.createImageData(box.columns, rows);
  image.data.set(pixelsOf(box.members, palette));
  context.putImageData(image, 0, 0);
  return canvas;
}

/** Red, green, blue and opacity of each, in their order. */
export function pixelsOf(members: readonly Member[], palette: Palette): Uint8ClampedArray {
  const colours = new Map(TONES.map((tone) => [tone, channels(palette.tones[tone].fill)]));
  const pixels = new Uint8ClampedArray(members.length * 4);
  let at = 0;
  for (const member of members) {
    const colour = colours.get(toneOf(member.state)) ?? [128, 128, 128];
    pixels[at] = colour[0];
    pixels[at + 1] = colour[1];
    pixels[at + 2] = colour[2];
    pixels[at + 3] = 255;
    at += 4;
  }
  return pixels;
}
