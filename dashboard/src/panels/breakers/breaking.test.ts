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
  expect(changeText({ act: "opened", source: "audit" }, false)).toBe("opened by hand");
  expect(changeText({ act: "reset", source: "audit" }, false)).toBe("closed by hand");
  expect(changeText({ act: "opened", source: "ledger" }, false)).toMatch(/too many calls failed/);
  expect(changeText({ act: "opened", source: "ledger" }, true)).toMatch(/command line/);
  expect(changeText({ act: "closed", source: "ledger" }, false)).toMatch(/probe/);
});

it("says what it was from then on, unless nothing was done", () => {
  expect(statusAfter({ act: "opened", outcome: "done" })).toBe("open");
  expect(statusAfter({ act: "reset", outcome: "done" })).toBe("closed");
  expect(statusAfter({ act: "opened", outcome: "the database was away" })).toBeNull();
  expect(statusAfter({ act: "reset", outcome: null })).toBeNull();
});
