import { describe, expect, it } from "vitest";

import { group, node } from "../testing";
import { pixelsOf } from "./blockImages";
import { FittingText } from "./fitting";
import { channels, mixed, readPalette } from "./palette";
import { groupLine, memberLine, singleLine } from "./words";

const NOW = Date.parse("2026-05-01T08:00:10Z");

describe("the second line of a box", () => {
  it("says state, attempts and how long", () => {
    expect(memberLine(node(1, "a", { state: "failed", attempts: 3, took: 12.5 }), NOW)).toBe("failed · 3 attempts · 12.5 s");
    expect(memberLine(node(1, "a", { state: "running", attempts: 1, started_at: "2026-05-01T08:00:00Z" }), NOW)).toBe("running · 10 s");
    expect(memberLine(node(1, "a", { state: "pending_approval" }), NOW)).toBe("pending approval");
  });

  it("of a group says what failed before what is most", () => {
    expect(groupLine(group("g", { states: { completed: 900, running: 50, failed: 2 } }))).toBe("2 failed · 900 completed");
    expect(singleLine(group("g", { states: { completed: 1 }, took: { n: 1, mean: 2, max: 2 } }))).toBe("completed · 2 s");
  });
});

describe("text that has to fit", () => {
  it("is cut where it must, and measured once", () => {
    let measured = 0;
    const text = new FittingText((each) => {
      measured++;
      return each.length * 10;
    });
    expect(text.fit("short", "f", 100)).toBe("short");
    expect(text.fit("a rather long name", "f", 100)).toBe("a rather…");
    const before = measured;
    expect(text.fit("a rather long name", "f", 100)).toBe("a rather…");
    expect(measured).toBe(before);
    expect(text.fit("xyz", "f", 5)).toBe("…");
  });
});

describe("a block from afar", () => {
  it("has a pixel of the colour of each card", () => {
    expect(channels("#0a7d89")).toEqual([10, 125, 137]);
    expect(channels("#fff")).toEqual([255, 255, 255]);
    expect(channels("gray")).toEqual([128, 128, 128]);
    expect(mixed("#ff0000", "#ffffff", 0.5)).toBe("#ff8080");
    expect(mixed("#ff0000", "#ffffff", 1)).toBe("#ff0000");
    const palette = readPalette();
    const tones = { ...palette.tones, good: { ...palette.tones.good, fill: "#010203" }, bad: { ...palette.tones.bad, fill: "#040506" } };
    const pixels = pixelsOf([node(1, "a", { state: "completed" }), node(2, "a", { state: "failed" })], { ...palette, tones });
    expect([...pixels]).toEqual([1, 2, 3, 255, 4, 5, 6, 255]);
  });
});
