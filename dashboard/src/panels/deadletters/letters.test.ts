import { expect, it } from "vitest";

import { aimText, answersText, bodyOf, filtersOf, NO_FILTERS, parametersOf, partsOf, partsText, queryOf, shortClass } from "./letters";

const mail = { ...NO_FILTERS, queue: "mail" };

it("keeps filters in the address and back", () => {
  expect(filtersOf(parametersOf({ queue: "mail", name: "", owner: "ada" }))).toEqual({ queue: "mail", name: "", owner: "ada" });
  expect(parametersOf(NO_FILTERS).toString()).toBe("");
  expect(queryOf({ queue: "mail", name: "tasks.send", owner: "ada" })).toEqual({ queue: ["mail"], name: ["tasks.send"], owner: "ada" });
});

it("says all only where nothing narrows it down", () => {
  expect(bodyOf({ kind: "filter", filters: NO_FILTERS })).toEqual({ all: true });
  expect(bodyOf({ kind: "filter", filters: mail })).toEqual({ queue: ["mail"], all: false });
  expect(bodyOf({ kind: "group", group: "5f", filters: mail })).toEqual({ queue: ["mail"], group: "5f", all: false });
});

it("says what an act is about", () => {
  expect(aimText({ kind: "filter", filters: NO_FILTERS }, null)).toBe("every dead letter");
  expect(aimText({ kind: "group", group: "5f", filters: mail }, "TimeoutError")).toBe("TimeoutError, queue mail");
  expect(aimText({ kind: "filter", filters: { ...mail, owner: "ada" } }, null)).toBe("dead letters of queue mail, owner ada");
  expect(aimText({ kind: "chosen", ids: [17] }, null)).toBe("task 17");
  expect(aimText({ kind: "chosen", ids: [17, 18] }, null)).toBe("those that are chosen");
});

it("calls errors by the last part of their class", () => {
  expect([shortClass("builtins.TimeoutError"), shortClass("Boom"), shortClass(null)]).toEqual(["TimeoutError", "Boom", "no error"]);
});

it("tells the answers of a bulk act", () => {
  expect(answersText({ retried: 1700, refused: 1 })).toBe("1,700 run again, 1 was refused.");
  expect(answersText({ retried: 1, not_yours: 2 })).toBe("1 runs again, 2 not yours.");
  expect(answersText({ retried: 0 })).toBe("There was none left.");
});

it("counts what became of those that ran again", () => {
  const states = ["completed", "completed", "failed", "running", "claimed", "pending", "blocked"] as const;
  const parts = partsOf(states.map((state) => ({ state })));
  expect(parts.map((part) => [part.label, part.value])).toEqual([
    ["completed", 2],
    ["failed again", 1],
    ["running", 2],
  ]);
  expect(partsText(parts, states.length)).toBe("2 completed, 1 failed again, 2 running, 2 wait");
  expect(partsText([], 1)).toBe("1 waits");
});
