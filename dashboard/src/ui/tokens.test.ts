/** WCAG AA: text at least 4.5:1 on what it stands on, lines of charts and borders of fields at least 3:1. */

import { readFileSync } from "node:fs";
import { join } from "node:path";

import { describe, expect, it } from "vitest";

const css = readFileSync(join(import.meta.dirname, "tokens.css"), "utf8");
const light = tokensOf(/:root \{([^}]*)\}/);
const themes = { light, dark: { ...light, ...tokensOf(/\[data-theme="dark"\] \{([^}]*)\}/) } };

function tokensOf(block: RegExp): Record<string, string> {
  const found = block.exec(css)?.[1] ?? "";
  return Object.fromEntries([...found.matchAll(/--([\w-]+):\s*(#[0-9a-f]{6});/g)].map(([, name, value]) => [name, value]));
}

function luminance(colour: string): number {
  const parts = [1, 3, 5].map((at) => Number.parseInt(colour.slice(at, at + 2), 16) / 255);
  const [red = 0, green = 0, blue = 0] = parts.map((part) => (part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4));
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
}

function contrast(one: string, other: string): number {
  const [high = 0, low = 0] = [luminance(one), luminance(other)].sort((a, b) => b - a);
  return (high + 0.05) / (low + 0.05);
}

const SURFACES = ["bg", "surface", "raised", "sunken", "hover", "selected"];
const STATES = ["waiting", "blocked", "active", "good", "bad", "warn", "ended"];
const TEXT: readonly (readonly [string, string])[] = [
  ...["text", "muted", "accent", "danger"].flatMap((text) => SURFACES.map((on) => [text, on] as const)),
  ...["bg", "surface", "raised"].map((on) => ["faint", on] as const),
  ...STATES.map((state) => [`state-${state}`, `state-${state}-tint`] as const),
  ["state-good", "sunken"],
  ["state-active", "sunken"],
  ["on-accent", "accent-fill"],
  ["on-danger", "danger-fill"],
];
const LINES: readonly (readonly [string, string])[] = [
  ...[1, 2, 3, 4, 5, 6].flatMap((series) => ["surface", "bg"].map((on) => [`series-${series}`, on] as const)),
  ...["surface", "bg", "raised"].flatMap((on) => [["line-strong", on] as const, ["focus", on] as const]),
];

describe.each(Object.entries(themes))("%s", (_, tokens) => {
  const of = (name: string): string => {
    const found = tokens[name];
    if (found === undefined) throw new Error(`tokens.css has no --${name}`);
    return found;
  };
  it.each(TEXT)("%s can be read on %s", (text, on) => expect(contrast(of(text), of(on))).toBeGreaterThanOrEqual(4.5));
  it.each(LINES)("%s can be seen on %s", (line, on) => expect(contrast(of(line), of(on))).toBeGreaterThanOrEqual(3));
});

it("names in the dark what it names in the light", () => {
  const dark = Object.keys(tokensOf(/\[data-theme="dark"\] \{([^}]*)\}/)).sort();
  expect(dark).toEqual(Object.keys(light).sort());
});
