import { describe, expect, it } from "vitest";

import { endedOf, leadingTone, statesText, sumOf, tonesOf } from "./states";

describe("states of a group", () => {
  it("are gathered by tone, in the order of a bar", () => {
    expect(tonesOf({ running: 2, claimed: 1, completed: 5, failed: 1, rejected: 1, cancelled: 2 })).toEqual([
      { tone: "good", count: 5 },
      { tone: "bad", count: 1 },
      { tone: "ended", count: 3 },
      { tone: "active", count: 3 },
    ]);
    expect(tonesOf({ pending: 0 })).toEqual([]);
  });

  it("have one tone that says most", () => {
    expect(leadingTone({ completed: 99, failed: 1, running: 50 })).toBe("bad");
    expect(leadingTone({ completed: 99, pending_approval: 1, running: 3 })).toBe("warn");
    expect(leadingTone({ completed: 99, running: 1 })).toBe("active");
    expect(leadingTone({ completed: 3, pending: 9 })).toBe("waiting");
    expect(leadingTone({})).toBe("waiting");
  });

  it("are said in words, the most first", () => {
    expect(statesText({ failed: 2, pending_approval: 30, running: 0 })).toBe("30 pending approval, 2 failed");
    expect(endedOf({ completed: 3, failed: 2, rejected: 1, running: 7 })).toBe(6);
    expect(sumOf([{ failed: 2 }, { failed: 1, running: 4 }])).toEqual({ failed: 3, running: 4 });
  });
});
