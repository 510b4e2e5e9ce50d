import { expect, it } from "vitest";

import { changeText, failedShare, inOrder, meaningOf, statusAfter } from "./breaking";

it("puts those first that spare a service", () => {
  const all = [
    { service: "b", status: "closed" },
    { service: "c", status: "half_open" },
    { service: "z", status: "open" },
    { service: "a", status: "open" },
  ] as const;
  expect(inOrder(all).map((each) => each.service)).toEqual(["a", "z", "c", "b"]);
});

it("tells shares of nothing apart from none", () => {
  expect(failedShare({ calls: 0, failures: 0 })).toBeNull();
  expect(failedShare({ calls: 4, failures: 0 })).toBe(0);
  expect(failedShare({ calls: 4, failures: 3 })).toBe(0.75);
});

it("says what it does with calls", () => {
  const open = { status: "open", forced: false, calls: 4, failures: 4, until: null } as const;
  expect(meaningOf(open)).toMatch(/probed/);
  expect(meaningOf({ ...open, forced: true })).toMatch(/until somebody resets it/);
  expect(meaningOf({ ...open, status: "half_open" })).toMatch(/One call/);
  expect(meaningOf({ ...open, status: "closed" })).toMatch(/go through/);
});

it("says what happened, and by whom", () => {
  const change = { act: "opened", source: "ledger", forced: false, calls: 12, failures: 7 } as const;
  expect(changeText({ ...change, source: "audit" })).toBe("opened by hand");
  expect(changeText({ ...change, act: "reset", source: "audit" })).toBe("closed by hand");
  expect(changeText(change)).toBe("opened: 7 of 12 calls failed");
  expect(changeText({ ...change, calls: null, failures: null })).toMatch(/probe failed/);
  expect(changeText({ ...change, forced: true })).toMatch(/command line/);
  expect(changeText({ ...change, act: "half_open" })).toMatch(/one call may probe/);
  expect(changeText({ ...change, act: "closed" })).toMatch(/probe/);
});

it("says what it was from then on, unless nothing was done", () => {
  expect(statusAfter({ act: "opened", outcome: "done" })).toBe("open");
  expect(statusAfter({ act: "half_open", outcome: "done" })).toBe("half_open");
  expect(statusAfter({ act: "reset", outcome: "done" })).toBe("closed");
  expect(statusAfter({ act: "opened", outcome: "the database was away" })).toBeNull();
  expect(statusAfter({ act: "reset", outcome: null })).toBeNull();
});
