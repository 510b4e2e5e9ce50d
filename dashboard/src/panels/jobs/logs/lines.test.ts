import { describe, expect, it } from "vitest";

import { asText, found, merged, rowsSeen, type Line } from "./lines";

function line(seq: number, text = `line ${seq}`, task = "17"): Line {
  return { seq, task, claim: 1, at: "2026-05-01T08:00:00Z", stream: "info", text };
}
const numbers = (lines: readonly Line[]): number[] => lines.map((each) => each.seq);

describe("lines", () => {
  it("are in order and each there once, from wherever they come", () => {
    let known = merged([], [line(5), line(6)]);
    known = merged(known, [line(6), line(7)]);
    known = merged(known, [line(4), line(3)]);
    expect(numbers(known)).toEqual([3, 4, 5, 6, 7]);
    expect(merged(known, [line(4)])).toBe(known);
    expect(merged(known, [])).toBe(known);
  });

  it("forget the oldest beyond a number", () => {
    expect(numbers(merged([line(1), line(2)], [line(3), line(4)], 3))).toEqual([2, 3, 4]);
  });

  it("are found by words, whatever their case, and by task", () => {
    const lines = [line(1, "Loaded 17 rows", "3"), line(2, "done", "17"), line(3, "failed", "4")];
    expect(numbers(found(lines, "loaded"))).toEqual([1]);
    expect(numbers(found(lines, "#17"))).toEqual([2]);
    expect(numbers(found(lines, "17"))).toEqual([1, 2]);
    expect(found(lines, "  ")).toBe(lines);
  });

  it("are drawn where they are seen", () => {
    expect(rowsSeen(0, 100, 20, 1000, 2)).toEqual({ from: 0, to: 7 });
    expect(rowsSeen(400, 100, 20, 1000, 2)).toEqual({ from: 18, to: 27 });
    expect(rowsSeen(1e6, 100, 20, 10, 2)).toEqual({ from: 10, to: 10 });
  });

  it("are written to a file", () => {
    expect(asText([line(1, "hello")])).toBe("2026-05-01T08:00:00Z #17 info hello\n");
  });
});
