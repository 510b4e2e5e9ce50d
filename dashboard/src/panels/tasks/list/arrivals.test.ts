import { describe, expect, it } from "vitest";

import { arrivalsOf, once, renewed } from "./arrivals";

const known = (ids: readonly number[], isWhole = false) => ({ shown: new Set(ids), isWhole });
const peek = (ids: readonly number[], hasMore = true) => ({ ids, hasMore });

describe("what arrived", () => {
  it("is what stands above what is shown", () => {
    expect(arrivalsOf(known([5, 4, 3]), peek([7, 6, 5, 4, 3]))).toEqual({ n: 2, more: false });
    expect(arrivalsOf(known([5, 4, 3]), peek([5, 4, 3]))).toEqual({ n: 0, more: false });
  });

  it("is not what moved: a task that is shown and ends goes to the top", () => {
    expect(arrivalsOf(known([5, 4, 3]), peek([3, 5, 4]))).toEqual({ n: 0, more: false });
    expect(arrivalsOf(known([5, 4, 3]), peek([3, 6, 5]))).toEqual({ n: 1, more: false });
  });

  it("is not what came up because others were deleted", () => {
    expect(arrivalsOf(known([5, 4, 3]), peek([5, 4, 2]))).toEqual({ n: 0, more: false });
  });

  it("is everything else where the whole list is shown", () => {
    expect(arrivalsOf(known([5, 4], true), peek([5, 4, 9], false))).toEqual({ n: 1, more: false });
    expect(arrivalsOf(known([], true), peek([1, 2], false))).toEqual({ n: 2, more: false });
    expect(arrivalsOf(known([], true), peek([], false))).toEqual({ n: 0, more: false });
  });

  it("may be more than were looked at", () => {
    expect(arrivalsOf(known([5, 4, 3]), peek([9, 8, 7]))).toEqual({ n: 3, more: true });
  });
});

it("renews rows where they are", () => {
  const rows = [{ id: 2, state: "a" }, { id: 1, state: "a" }];
  expect(renewed(rows, new Map([[1, { id: 1, state: "b" }], [9, { id: 9, state: "c" }]]))).toEqual([
    { id: 2, state: "a" },
    { id: 1, state: "b" },
  ]);
  expect(renewed(rows, new Map())).toBe(rows);
});

it("shows a row once that is on two pages", () => {
  expect(once([{ id: 3 }, { id: 2 }, { id: 3 }, { id: 1 }])).toEqual([{ id: 3 }, { id: 2 }, { id: 1 }]);
});
