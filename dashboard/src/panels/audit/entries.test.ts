import { expect, it } from "vitest";

import { detailText, linkOf, outcomeOf } from "./entries";

it("links what has a page", () => {
  expect(linkOf("task/17")).toBe("/tasks/17");
  expect(linkOf("queue/mail/eu west")).toBe("/queues/mail%2Feu%20west");
  expect(linkOf("user/ada@example.org")).toBe("/accounts/ada%40example.org");
  expect(linkOf("breaker/sms")).toBe("/breakers/sms");
});

it("links nothing that is many things or has no page", () => {
  for (const subject of ["task/*", "token/7", "", "task/", "toString/x"]) expect(linkOf(subject)).toBeNull();
});

it("says how an act ended", () => {
  expect(outcomeOf("done").text).toBe("done");
  expect(outcomeOf(null).text).toBe("not known");
  expect(outcomeOf("no queue")).toEqual({ tone: "bad", text: "refused", detail: "no queue" });
});

it("tells a detail in one line, without what is empty", () => {
  expect(detailText({ n: 5, per: null, queue: [], all: false, kwargs: {} })).toBe("n: 5");
  expect(detailText({ label: "deploy", scopes: ["read"] })).toBe('label: deploy, scopes: ["read"]');
  expect(detailText(null)).toBe("");
  expect(detailText([1])).toBe("[1]");
});
