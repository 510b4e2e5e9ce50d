import { describe, expect, it } from "vitest";

import { isNarrowed, NO_FILTERS, parseSearch, quoted, readTerms, withValues } from "./query";

const filtersOf = (text: string) => parseSearch(text).filters;
const wrongsOf = (text: string) => parseSearch(text).wrongs.map((wrong) => [text.slice(wrong.from, wrong.to), wrong.message]);

describe("a search", () => {
  it("of nothing narrows nothing", () => {
    expect(filtersOf("   ")).toEqual(NO_FILTERS);
    expect(isNarrowed(NO_FILTERS)).toBe(false);
  });

  it("has keys with values, and words", () => {
    expect(filtersOf("state:failed  queue:mail error:Timeout welcome 17")).toEqual({
      ...NO_FILTERS,
      status: ["failed"],
      queue: ["mail"],
      error: ["Timeout"],
      text: "welcome 17",
    });
    expect(parseSearch("state:failed").wrongs).toEqual([]);
    expect(isNarrowed(filtersOf("dead:no"))).toBe(true);
  });

  it("takes several values of one key, each once", () => {
    expect(filtersOf("state:failed,cancelled state:FAILED tag:a,b tag:a id:3,#4").status).toEqual(["failed", "cancelled"]);
    expect(filtersOf("tag:a,b tag:a").tag).toEqual(["a", "b"]);
    expect(filtersOf("id:3,#4,3").id).toEqual([3, 4]);
  });

  it("keeps what stands in quotes together", () => {
    const text = String.raw`error:"no \"answer\", at all" queue:"a,b",c "state:failed"`;
    expect(filtersOf(text)).toEqual({
      ...NO_FILTERS,
      error: ['no "answer", at all'],
      queue: ["a,b", "c"],
      text: "state:failed",
    });
  });

  it("reads a quote that is still open to the end", () => {
    expect(filtersOf('error:"no answer').error).toEqual(["no answer"]);
    expect(filtersOf('error:"').error).toEqual([""]);
  });

  it("knows other words for its keys", () => {
    expect(filtersOf("status:running task:mail.* is:lost")).toEqual({
      ...NO_FILTERS,
      status: ["running", "lost"],
      name: ["mail.*"],
    });
  });

  it("knows words for several states", () => {
    expect(filtersOf("state:waiting,failed").status).toEqual(["pending", "pending_approval", "blocked", "failed"]);
    expect(filtersOf("state:active").status).toEqual(["claimed", "running", "paused", "cancelling"]);
    expect(filtersOf("state:dlq")).toEqual({ ...NO_FILTERS, status: ["failed"], dead_letter: true });
  });

  it("takes colons in values and addresses as they are", () => {
    expect(filtersOf("worker:host:4711 error:a:b").worker).toBe("host:4711");
    expect(filtersOf("error:a:b").error).toEqual(["a:b"]);
    expect(filtersOf("http://example.org/x 12:30").text).toBe("http://example.org/x 12:30");
  });

  it("says what it cannot search for, and where", () => {
    expect(wrongsOf("stat:failed x")).toEqual([
      ["stat:failed", "There is no key «stat:». Did you mean «state:»? To search for the text itself, write it in quotes"],
    ]);
    expect(wrongsOf("state:failde")).toEqual([["failde", "There is no state «failde». Did you mean failed?"]]);
    expect(wrongsOf("job:abc")[0]?.[1]).toContain("whole number");
    expect(wrongsOf("id:0")).toHaveLength(1);
    expect(wrongsOf("dead:perhaps")).toHaveLength(1);
    expect(wrongsOf("worker:a worker:b")[0]?.[1]).toContain("one worker");
    expect(wrongsOf("worker:a worker:a")).toEqual([]);
    expect(wrongsOf("queue: x")).toEqual([["queue:", "Write what the queue is, or leave «queue:» out"]]);
    expect(wrongsOf("-state:failed")[0]?.[1]).toContain("cannot leave out");
    expect(wrongsOf("name:a*b")[0]?.[1]).toContain("end of a name");
  });

  it("knows the place of each of its terms", () => {
    const text = '  queue:a,"b c" word';
    expect(readTerms(text).map((term) => text.slice(term.from, term.to))).toEqual(['queue:a,"b c"', "word"]);
    expect(readTerms(text)[0]?.values.map((value) => text.slice(value.from, value.to))).toEqual(["a", '"b c"']);
  });
});

describe("changing one key of a search", () => {
  it("leaves the rest as it was written", () => {
    expect(withValues('state:failed  error:"no answer" x', "state", ["running", "lost"])).toBe(
      'state:running,lost error:"no answer" x',
    );
    expect(withValues("status:failed x", "state", [])).toBe("x");
    expect(withValues("", "queue", ["a b"])).toBe('queue:"a b"');
  });

  it("writes values so that they are read again", () => {
    for (const value of ["mail", "a b", 'say "x"', "back\\slash", "a,b", "", "a:b", " "]) {
      expect(filtersOf(`queue:${quoted(value)}`).queue).toEqual([value]);
    }
  });
});
