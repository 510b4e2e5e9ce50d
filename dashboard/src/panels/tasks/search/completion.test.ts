import { describe, expect, it } from "vitest";

import { apply, complete, type Known } from "./completion";

const known: Known = { queue: ["default", "mail", "mail slow", "reports"], name: ["tasks.welcome", "tasks.mail.send"] };

/** `|` is the cursor. */
function at(marked: string): [string, number] {
  const cursor = marked.indexOf("|");
  return [marked.replace("|", ""), cursor];
}

const labels = (marked: string) => complete(...at(marked), known).map((each) => each.label);

function chosen(marked: string, label: string): string {
  const [text, cursor] = at(marked);
  const suggestion = complete(text, cursor, known).find((each) => each.label === label);
  if (suggestion === undefined) throw new Error(`${label} is not suggested`);
  const after = apply(text, suggestion);
  return `${after.text.slice(0, after.cursor)}|${after.text.slice(after.cursor)}`;
}

describe("completion", () => {
  it("suggests keys where nothing is written", () => {
    expect(labels("|")).toContain("state:");
    expect(labels("state:failed |")).toContain("queue:");
  });

  it("suggests keys by their beginning, and by their other words", () => {
    expect(labels("st|")).toEqual(["state:"]);
    expect(labels("status|")).toEqual(["state:"]);
    expect(labels("zz|")).toEqual([]);
    expect(labels("12|")).toEqual([]);
  });

  it("suggests values: those that begin so first", () => {
    expect(labels("state:c|")).toEqual(["claimed", "cancelling", "completed", "cancelled", "blocked", "rejected", "active"]);
    expect(labels("queue:mail|")).toEqual(["mail", "mail slow"]);
    expect(labels("name:mail|")).toEqual(["tasks.mail.send"]);
    expect(labels("worker:|")).toEqual([]);
  });

  it("does not suggest what stands there already", () => {
    expect(labels("queue:mail,|")).toEqual(["default", "mail slow", "reports"]);
    expect(labels("queue:reports|")).toEqual([]);
  });

  it("puts a key in, and the cursor behind it", () => {
    expect(chosen("sta| queue:mail", "state:")).toBe("state:| queue:mail");
    expect(chosen("|", "queue:")).toBe("queue:|");
  });

  it("puts a value in, quoted where it must be, and a blank behind it", () => {
    expect(chosen("queue:ma|", "mail")).toBe("queue:mail |");
    expect(chosen("queue:ma|", "mail slow")).toBe('queue:"mail slow" |');
    expect(chosen('queue:"mail s| state:lost', "mail slow")).toBe('queue:"mail slow" |');
    expect(chosen("queue:default,re| x", "reports")).toBe("queue:default,reports| x");
  });
});
