import { describe, expect, it } from "vitest";

import { parseSearch } from "../search/query";
import { answersText, criteriaFor, wordsFor } from "./bulk";

const matching = (text: string) => ({ kind: "matching" as const, filters: parseSearch(text).filters });
const rows = { kind: "rows" as const, ids: [3, 4] };

describe("what a bulk act is about", () => {
  it("is the rows that were chosen", () => {
    expect(criteriaFor("cancel", rows)).toEqual({ id: [3, 4] });
    expect(criteriaFor("delete", rows)).toEqual({ id: [3, 4] });
    // By itself a retry takes what failed; who chose a row that completed means that one as well.
    expect(criteriaFor("retry", rows)).toEqual({ id: [3, 4], status: ["failed", "cancelled", "completed"] });
  });

  it("is what the search finds", () => {
    expect(criteriaFor("retry", matching("queue:mail error:Timeout x"))).toEqual({ queue: ["mail"], error: ["Timeout"], text: "x" });
    expect(criteriaFor("delete", matching("dead:no job:4"))).toEqual({ dead_letter: false, job: 4 });
  });

  it("says so where it is everything", () => {
    expect(criteriaFor("delete", matching(""))).toEqual({ all: true });
  });

  it("leaves out states that cannot be acted on, and is nothing where all are of those", () => {
    expect(criteriaFor("retry", matching("state:failed,running"))).toEqual({ status: ["failed"] });
    expect(criteriaFor("retry", matching("state:running"))).toBeNull();
    expect(criteriaFor("cancel", matching("state:failed"))).toBeNull();
    expect(criteriaFor("delete", matching("state:running"))).toEqual({ status: ["running"] });
  });
});

describe("what is said", () => {
  it("counts before the act", () => {
    expect(wordsFor("retry", rows, { n: 2, more: false })).toMatchObject({ title: "Retry 2 tasks?", act: "Retry 2 tasks" });
    expect(wordsFor("delete", matching(""), { n: 1, more: false }).title).toBe("Delete 1 task?");
    expect(wordsFor("cancel", matching(""), { n: 10_000, more: true }).act).toBe("Cancel 10,000 or more tasks");
    expect(wordsFor("cancel", rows, { n: 1, more: false }).body).toContain("One of those you chose cannot be cancelled now and stays.");
  });

  it("tells what became of them", () => {
    expect(answersText({ retried: 1700, refused: 1 })).toBe("1,700 retried, 1 refused");
    expect(answersText({ cancelled: 2, cancelling: 1, too_late: 0 })).toBe("2 cancelled, 1 told to stop");
    expect(answersText({})).toBe("Nothing changed");
  });
});
