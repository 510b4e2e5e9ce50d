import { describe, expect, it, vi } from "vitest";

import { LogBuffer, plain, type Line } from "./buffer";
import { findLines, nextMatch, parts } from "./finding";
import { EVERYTHING, viewOf } from "./view";
import { measure, rowAt, rowsOf, shownOf, totalOf } from "./window";

const line = (claim: number, seq: number, text = `${claim}.${seq}`): Line => ({ claim, seq, at: "", stream: "info", text });
const lines = (claim: number, from: number, to: number): Line[] =>
  Array.from({ length: to - from }, (_, at) => line(claim, from + at));
const places = (buffer: LogBuffer) => buffer.lines.map((each) => each.text);

describe("the buffer", () => {
  it("keeps lines in order, whatever comes first", () => {
    const buffer = new LogBuffer();
    buffer.add([line(2, 3), line(2, 4)]);
    buffer.add([line(1, 0), line(1, 1), line(2, 0)]);
    buffer.add([line(2, 1), line(2, 2), line(2, 3)]);
    buffer.add([line(2, 5)]);
    expect(places(buffer)).toEqual(["1.0", "1.1", "2.0", "2.1", "2.2", "2.3", "2.4", "2.5"]);
  });

  it("has each line once, and says so only when something changed", () => {
    const buffer = new LogBuffer();
    const heard = vi.fn();
    buffer.subscribe(heard);
    buffer.add(lines(1, 0, 5));
    buffer.add(lines(1, 0, 5));
    buffer.add(lines(1, 2, 7));
    buffer.add([]);
    expect(buffer.lines).toHaveLength(7);
    expect(heard).toHaveBeenCalledTimes(2);
    expect(buffer.version).toBe(2);
  });

  it("puts a batch in order that is not", () => {
    const buffer = new LogBuffer();
    buffer.add([line(1, 0)]);
    buffer.add([line(1, 2), line(1, 0), line(1, 1), line(1, 2)]);
    expect(places(buffer)).toEqual(["1.0", "1.1", "1.2"]);
  });

  it("joins pages that are read with a tail that was heard, quickly", () => {
    const buffer = new LogBuffer();
    buffer.add(lines(1, 99_500, 100_000));
    for (let from = 0; from < 100_000; from += 500) buffer.add(lines(1, from, from + 500));
    expect(buffer.lines).toHaveLength(100_000);
    expect(buffer.lines.every((each, at) => each.seq === at)).toBe(true);
  });

  it("is full one day, and counts what it cannot hold", () => {
    const buffer = new LogBuffer(10);
    buffer.add(lines(1, 0, 8));
    buffer.add(lines(1, 8, 12));
    expect(buffer.lines).toHaveLength(10);
    expect([buffer.isFull, buffer.dropped]).toEqual([true, 2]);
    buffer.add(lines(0, 0, 3));
    expect(buffer.dropped).toBe(5);
    expect(buffer.lines[0]?.claim).toBe(1);
  });

  it("takes the colours of terminals out", () => {
    expect(plain("\u001b[1;31mred\u001b[0m and \u001b]0;title\u0007plain")).toBe("red and plain");
    expect(plain("[31m")).toBe("[31m");
  });
});

describe("the window", () => {
  it("counts the rows that a line takes", () => {
    expect([rowsOf("", 10), rowsOf("0123456789", 10), rowsOf("0123456789a", 10), rowsOf("世界世界世界", 10)]).toEqual([1, 1, 2, 2]);
    expect(rowsOf("anything", 0)).toBe(1);
  });

  it("draws what is seen and a little more, however many there are", () => {
    const heights = measure(100_000, () => 20);
    expect(totalOf(heights)).toBe(2_000_000);
    expect(shownOf(heights, 1_000_000, 400, 5)).toEqual({ first: 49_995, end: 50_026, above: 999_900, below: 999_480 });
    expect(shownOf(heights, 0, 400, 5)).toMatchObject({ first: 0, end: 26, above: 0 });
    expect(shownOf(heights, 2_000_000, 400, 5)).toMatchObject({ end: 100_000, below: 0 });
  });

  it("goes by heights that differ", () => {
    const heights = measure(4, (at) => (at + 1) * 10);
    expect([0, 9, 10, 29, 30, 59, 60, 99, 500].map((height) => rowAt(heights, height))).toEqual([0, 0, 1, 1, 2, 2, 3, 3, 3]);
    expect(rowAt(measure(0, () => 1), 5)).toBe(0);
  });

  it("computes new rows alone", () => {
    const heightOf = vi.fn(() => 20);
    const before = measure(1000, heightOf);
    heightOf.mockClear();
    expect(totalOf(measure(1003, heightOf, before))).toBe(20_060);
    expect(heightOf).toHaveBeenCalledTimes(3);
    expect(totalOf(measure(10, heightOf, before))).toBe(200);
  });
});

describe("finding", () => {
  const all = ["Alpha", "beta ALPHA", "gamma"].map((text, at) => line(1, at, text));

  it("finds in whatever case, from a place on", () => {
    expect(findLines(all, "alpha")).toEqual([0, 1]);
    expect(findLines(all, "alpha", 1)).toEqual([1]);
    expect(findLines(all, "")).toEqual([0, 1, 2]);
  });

  it("marks what was found", () => {
    expect(parts("beta ALPHA alpha!", "Alpha")).toEqual([
      ["beta ", false],
      ["ALPHA", true],
      [" ", false],
      ["alpha", true],
      ["!", false],
    ]);
    expect(parts("none", "x")).toEqual([["none", false]]);
    expect(parts("", "x")).toEqual([["", false]]);
    expect(parts("İstanbul x", "x")).toEqual([["İstanbul x", false]]);
  });

  it("goes around", () => {
    expect(nextMatch([3, 7], null, 1)).toBe(3);
    expect(nextMatch([3, 7], 3, 1)).toBe(7);
    expect(nextMatch([3, 7], 7, 1)).toBe(3);
    expect(nextMatch([3, 7], 5, -1)).toBe(3);
    expect(nextMatch([3, 7], 3, -1)).toBe(7);
    expect(nextMatch([], 3, 1)).toBeNull();
  });
});

describe("the view", () => {
  const all = [line(1, 0, "a one"), line(1, 1, "b"), line(2, 0, "A two"), line(2, 1, "c")];
  const texts = (view: { readonly lines: readonly Line[] }) => view.lines.map((each) => each.text);

  it("shows what is wanted", () => {
    expect(texts(viewOf(all, EVERYTHING))).toEqual(["a one", "b", "A two", "c"]);
    expect(texts(viewOf(all, { ...EVERYTHING, claim: 2 }))).toEqual(["A two", "c"]);
    expect(texts(viewOf(all, { ...EVERYTHING, text: "A " }))).toEqual(["a one", "A two"]);
    expect(texts(viewOf(all, { ...EVERYTHING, stream: "error" }))).toEqual([]);
  });

  it("goes through new lines alone", () => {
    const wanted = { ...EVERYTHING, text: "a" };
    const before = viewOf(all, wanted);
    const after = viewOf([...all, line(2, 2, "more a"), line(2, 3, "x")], wanted, before);
    expect(after).toMatchObject({ grew: true, through: 6 });
    expect(texts(after)).toEqual(["a one", "A two", "more a"]);
    expect(viewOf(all, wanted, before)).toBe(before);
  });

  it("begins anew where something came in between, or something else is wanted", () => {
    const before = viewOf(all, { ...EVERYTHING, claim: 2 });
    const earlier = viewOf([line(0, 0, "z"), ...all], { ...EVERYTHING, claim: 2 }, before);
    expect(earlier.grew).toBe(false);
    expect(texts(earlier)).toEqual(["A two", "c"]);
    expect(viewOf(all, EVERYTHING, before).grew).toBe(false);
  });
});
