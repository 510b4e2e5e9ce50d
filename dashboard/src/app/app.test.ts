import { describe, expect, it } from "vitest";

import { admin, operator, user, viewer } from "@/testing/page";
import { withParameter } from "@/url/queryState";

import { rank } from "./finding";
import type { Command } from "./panel";
import { deciderOf, may, mayControl } from "./roles";
import { KeySequence } from "./shortcuts";

const command = (title: string, keywords?: string): Command => ({
  id: title,
  title,
  ...(keywords === undefined ? {} : { keywords }),
  run: () => undefined,
});

describe("the palette finds", () => {
  const commands = [command("Go to Tasks"), command("Go to Dead letters"), command("New task", "enqueue submit"), command("Theme: dark")];
  const titles = (text: string): readonly string[] => rank(commands, text).map((each) => each.title);

  it("everything, in its order, for nothing", () => expect(titles("  ")).toEqual(commands.map((each) => each.title)));
  it("the beginning of words first", () => expect(titles("task")).toEqual(["Go to Tasks", "New task"]));
  it("by all words, in any order", () => expect(titles("letters go")).toEqual(["Go to Dead letters"]));
  it("by words that are not in the title", () => expect(titles("enq")).toEqual(["New task"]));
  it("letters that are spread", () => expect(titles("gdl")).toEqual(["Go to Dead letters"]));
  it("nothing for what is not there", () => expect(titles("zebra")).toEqual([]));
});

describe("roles", () => {
  it("reach as far as the server's do", () => {
    const reach = (role: "viewer" | "user" | "operator" | "admin") =>
      [viewer, user, operator, admin].map((session) => may(session, { role }));
    expect(reach("viewer")).toEqual([true, true, true, true]);
    expect(reach("operator")).toEqual([false, false, true, true]);
    expect(reach("admin")).toEqual([false, false, false, true]);
  });

  it("let users oversee nothing, whom viewers may look over", () => {
    expect([viewer, user, operator].map((session) => may(session, { overseer: true }))).toEqual([true, false, true]);
  });

  it("end where the scopes of a token do", () => {
    expect(may({ ...admin, scopes: ["read"] }, { role: "operator", scope: "control" })).toBe(false);
  });

  it("decide what asks for them, and admins what asks for a role that is none of ours", () => {
    expect([null, "viewer", "operator", "admin", "finance", "toString"].map(deciderOf)).toEqual([
      ...["operator", "operator", "operator"],
      ...["admin", "admin", "admin"],
    ]);
  });

  it("let users control their own, operators everything, viewers nothing", () => {
    expect(mayControl(user, "uma")).toBe(true);
    expect(mayControl(user, "other")).toBe(false);
    expect(mayControl(user, null)).toBe(false);
    expect(mayControl(operator, "uma")).toBe(true);
    expect(mayControl(viewer, "vic")).toBe(false);
    expect(mayControl({ ...admin, scopes: ["read"] }, null)).toBe(false);
  });
});

describe("keys", () => {
  const typed = (keys: string, gap = 100): readonly (string | null)[] => {
    const sequence = new KeySequence(["g t", "g d", "n", "/"]);
    return [...keys].map((key, at) => sequence.press(key, at * gap));
  };

  it("work alone and one after another", () => expect(typed("ngtgd")).toEqual(["n", null, "g t", null, "g d"]));
  it("begin anew after one that leads nowhere", () => expect(typed("gxgt")).toEqual([null, null, null, "g t"]));
  it("do not lose one that follows a beginning", () => expect(typed("gn")).toEqual([null, "n"]));
  it("forget a beginning after a while", () => expect(typed("gt", 2000)).toEqual([null, null]));
});

it("changes one parameter of an address and keeps the rest", () => {
  const before = new URLSearchParams("a=1&q=x&q=y&b=2");
  expect(withParameter(before, "q", ["z"]).toString()).toBe("a=1&b=2&q=z");
  expect(withParameter(before, "q", []).toString()).toBe("a=1&b=2");
  expect(before.toString()).toBe("a=1&q=x&q=y&b=2");
});
