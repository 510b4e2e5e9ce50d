/** Colours of the theme for a canvas, which knows no custom properties. */

import type { Tone } from "@/ui";

import { TONES } from "../states";

export interface ToneColours {
  /** For lines and letters, on the tint or the surface. */
  readonly ink: string;
  readonly tint: string;
  /** In bars and from afar. */
  readonly fill: string;
}

export interface Palette {
  readonly ground: string;
  readonly surface: string;
  readonly sunken: string;
  readonly line: string;
  readonly strong: string;
  readonly text: string;
  readonly muted: string;
  readonly accent: string;
  readonly focus: string;
  readonly font: string;
  readonly tones: Readonly<Record<Tone, ToneColours>>;
  /** By kind of edge. */
  readonly edges: readonly string[];
}

/** Which colour, and how much of it: what has not begun stands back, but can be told from the ground. */
const FILLS: Readonly<Record<Tone, readonly [string, number]>> = {
  good: ["--series-6", 1],
  bad: ["--series-2", 1],
  ended: ["--line-strong", 1],
  active: ["--series-1", 1],
  warn: ["--series-4", 1],
  waiting: ["--state-waiting", 0.3],
  blocked: ["--state-blocked", 0.3],
};

export function readPalette(root: Element = document.documentElement): Palette {
  const style = getComputedStyle(root);
  const read = (name: string, otherwise = "gray"): string => style.getPropertyValue(name).trim() || otherwise;
  const tones = Object.fromEntries(
    TONES.map((tone) => [
      tone,
      {
        ink: read(`--state-${tone}`),
        tint: read(`--state-${tone}-tint`),
        fill: mixed(read(FILLS[tone][0]), read("--surface"), FILLS[tone][1]),
      },
    ]),
  ) as Record<Tone, ToneColours>;
  return {
    ground: read("--bg"),
    surface: read("--surface"),
    sunken: read("--sunken"),
    line: read("--line"),
    strong: read("--line-strong"),
    text: read("--text"),
    muted: read("--muted"),
    accent: read("--accent"),
    focus: read("--focus"),
    font: read("--font", "sans-serif"),
    tones,
    edges: [read("--line-strong"), read("--series-3"), read("--series-2")],
  };
}

/** Calls `changed` whenever the theme is another. Gives what ends it. */
export function watchTheme(changed: () => void): () => void {
  const observer = new MutationObserver(changed);
  observer.observe(document.documentElement, { attributes: true, attributeFilter: ["data-theme"] });
  return () => observer.disconnect();
}

/** So much of one colour, the rest of the other. */
export function mixed(colour: string, other: string, part: number): string {
  if (part >= 1) return colour;
  const from = channels(other);
  const to = channels(colour);
  const parts = from.map((value, at) => Math.round(value + ((to[at] ?? 0) - value) * part));
  return `#${parts.map((value) => value.toString(16).padStart(2, "0")).join("")}`;
}

/** #rrggbb or #rgb as numbers from 0 to 255; gray for anything else. */
export function channels(colour: string): readonly [number, number, number] {
  const short = /^#([0-9a-f])([0-9a-f])([0-9a-f])$/i.exec(colour);
  const long = /^#([0-9a-f]{2})([0-9a-f]{2})([0-9a-f]{2})/i.exec(colour);
  const parts = short?.slice(1).map((digit) => digit + digit) ?? long?.slice(1);
  const [red, green, blue] = parts?.map((part) => Number.parseInt(part, 16)) ?? [128, 128, 128];
  return [red ?? 128, green ?? 128, blue ?? 128];
}
