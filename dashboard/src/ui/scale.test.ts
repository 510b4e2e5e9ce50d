import { describe, expect, it } from "vitest";

import { alone, nearest } from "./Chart";
import { countText, depthText, linePath, place, roundStep, roundTop, shortNumber, ticks, withPauses } from "./scale";

describe("an axis", () => {
  it.each([
    [0, 1],
    [-3, 1],
    [0.3, 0.3],
    [0.07, 0.08],
    [7, 8],
    [10, 10],
    [99, 100],
    [101, 150],
    [4321, 6000],
  ])("that has to show %d ends at %d", (greatest, top) => {
    expect(roundTop(greatest)).toBe(top);
  });

  it("ends on a tick, and no lower than what it shows", () => {
    for (const greatest of [0.0017, 0.3, 1, 3, 7, 19, 23, 77, 1234, 99_999]) {
      const top = roundTop(greatest);
      expect(top).toBeGreaterThanOrEqual(greatest);
      expect(ticks(0, top).at(-1)).toBe(top);
      expect(ticks(0, top).length).toBeGreaterThanOrEqual(3);
      expect(ticks(0, top).length).toBeLessThanOrEqual(7);
    }
  });

  it("has no ticks with the noise of floating point", () => expect(ticks(0, 0.3, 3)).toEqual([0, 0.1, 0.2, 0.3]));
  it("is one tick where there is no room", () => expect(ticks(5, 5)).toEqual([5]));
  it.each([
    [0.9, 1],
    [1.1, 2],
    [3, 5],
    [6, 10],
    [60, 100],
  ])("takes for %d the step %d", (rough, step) => expect(roundStep(rough)).toBeCloseTo(step));
});

it("puts a value in its place, also upside down", () => {
  expect(place(5, [0, 10], [100, 0])).toBe(50);
  expect(place(5, [5, 5], [7, 9])).toBe(7);
});

it("breaks a line where a value is missing", () => {
  expect(linePath([[0, 1], [1, 2], [2, null], [3, 4], [4, 5]])).toBe("M0.0 1.0L1.0 2.0M3.0 4.0L4.0 5.0");
  expect(linePath([])).toBe("");
});

it.each([
  [-5, 0],
  [0, 0],
  [14, 0],
  [16, 1],
  [44, 2],
  [999, 3],
])("finds what is nearest to %d", (time, at) => expect(nearest([0, 30, 40, 50], time)).toBe(at));

it.each([
  [0, "0"],
  [0.1234, "0.123"],
  [12.345, "12.3"],
  [123.4, "123"],
  [9999, "9,999"],
  [12_345, "12.3k"],
  [4_560_000, "4.56M"],
  [7.2e9, "7.2G"],
  [Number.NaN, "–"],
])("writes %d as %s", (value, text) => expect(shortNumber(value)).toBe(text));

it("says where counting stopped", () => {
  expect(countText({ n: 10_000, more: true })).toBe("10,000+");
  expect(countText({ n: 17, more: false })).toBe("17");
  expect(depthText(10_001)).toBe("10,000+");
  expect(depthText(10_000)).toBe("10,000");
});

it("finds the points that no line would show", () => {
  expect(alone([[0, 1], [1, null], [2, 5], [3, 6], [4, null]])).toEqual([[0, 1]]);
  expect(alone([[0, null]])).toEqual([]);
});

it("draws no line over a pause in which nothing is known", () => {
  expect(withPauses([0, 10, 50, 60], [1, 2, null, 4])).toEqual([[0, 1], [10, 2], [50, null], [60, 4]]);
  expect(linePath(withPauses([0, 10, 50, 60], [1, 2, 3, 4], 20))).toBe("M0.0 1.0L10.0 2.0M50.0 3.0L60.0 4.0");
});
