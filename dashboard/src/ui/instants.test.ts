import { describe, expect, it } from "vitest";

import { durationText, localTime, relativeTime, secondsBetween, utcTime } from "./instants";

const at = new Date("2026-05-01T08:00:00Z");

describe("durationText", () => {
  it.each([
    [0, "0 s"],
    [0.0000042, "4.2 µs"],
    [0.0034, "3.4 ms"],
    [0.0999, "99.9 ms"],
    [0.9994, "999 ms"],
    [0.99951, "1 s"],
    [12.54, "12.5 s"],
    [59.94, "59.9 s"],
    [59.96, "1 min"],
    [250, "4 min 10 s"],
    [3599.6, "1 h"],
    [7500, "2 h 5 min"],
    [86_400, "1 d"],
    [273_600, "3 d 4 h"],
    [-90, "−1 min 30 s"],
    [Number.NaN, "–"],
    [Number.POSITIVE_INFINITY, "–"],
  ])("%d is %s", (seconds, text) => expect(durationText(seconds)).toBe(text));
});

describe("relativeTime", () => {
  it.each([
    [0, "just now"],
    [-999, "just now"],
    [-1000, "1 s ago"],
    [-59_999, "59 s ago"],
    [-60_000, "1 min ago"],
    [-3_600_000, "1 h ago"],
    [-47 * 3_600_000, "47 h ago"],
    [-48 * 3_600_000, "2 d ago"],
    [90_000, "in 1 min"],
  ])("%d ms away is %s", (difference, text) => expect(relativeTime(new Date(at.getTime() + difference), at.getTime())).toBe(text));
});

it("writes UTC as logs do", () => expect(utcTime(at)).toBe("2026-05-01 08:00:00 UTC"));

it("writes the time of the viewer's zone", () => {
  expect(localTime(at, "Asia/Tokyo")).toContain("17:00:00");
  expect(localTime(at, "America/New_York")).toContain("04:00:00");
});

it("knows how long something took, where both ends are known", () => {
  expect(secondsBetween("2026-05-01T08:00:00Z", "2026-05-01T08:00:01.500Z")).toBe(1.5);
  expect(secondsBetween("2026-05-01T08:00:00.000100Z", "2026-05-01T08:00:00.000247Z")).toBeCloseTo(0.000147, 9);
  expect(secondsBetween("2026-05-01T08:00:00.999900Z", "2026-05-01T08:00:01.000150Z")).toBeCloseTo(0.00025, 9);
  expect(secondsBetween("2026-05-01T08:00:00.0001Z", "2026-05-01T08:00:00.25Z")).toBeCloseTo(0.2499, 9);
  expect(secondsBetween(null, "2026-05-01T08:00:00Z")).toBeNull();
  expect(secondsBetween("2026-05-01T08:00:00Z", undefined)).toBeNull();
});
