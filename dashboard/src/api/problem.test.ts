import { describe, expect, it } from "vitest";

import { asProblem, placedErrors, ProblemError, problemOf, secondsOf } from "./problem";

const body = {
  type: "about:blank",
  title: "Unprocessable Content",
  status: 422,
  instance: "/api/v1/schedules",
  detail: "two things are wrong",
  request_id: "r17",
  errors: [
    { where: "body", pointer: "/cron", detail: "is no cron" },
    { where: "body", pointer: "/command/argv/0", detail: "is too long" },
    { where: "query", pointer: "/limit", detail: "is too large" },
  ],
};

describe("problemOf", () => {
  it("takes what the server says", () => {
    const response = new Response("", { status: 422, headers: { "Retry-After": "7" } });
    const problem = problemOf(body, response);
    expect(problem).toMatchObject({ title: body.title, status: 422, detail: body.detail, requestId: "r17", retryAfter: 7 });
    expect(problem.message).toBe("two things are wrong");
    expect(problem.wrongs).toHaveLength(3);
  });

  it.each([null, undefined, "<html>bad gateway</html>", 17, { title: 3 }])("makes do with %j of a proxy", (odd) => {
    const problem = problemOf(odd, new Response("", { status: 502, headers: { "X-Request-ID": "p1" } }));
    expect(problem.title).toBe("The server answered 502");
    expect(problem).toMatchObject({ status: 502, detail: null, requestId: "p1", wrongs: [] });
    expect(problem.passes).toBe(true);
  });
});

describe("asProblem", () => {
  it("keeps a problem", () => {
    const problem = new ProblemError("Not Found", 404);
    expect(asProblem(problem)).toBe(problem);
    expect(problem.passes).toBe(false);
  });

  it("says that nobody answered", () => {
    expect(asProblem(new TypeError("Failed to fetch"))).toMatchObject({ status: 0, title: "The server cannot be reached" });
    expect(asProblem(new TypeError("NetworkError when attempting to fetch")).passes).toBe(true);
  });

  it("does not blame the network for a mistake of the page", () => {
    expect(asProblem(new TypeError("x is undefined"))).toMatchObject({ status: -1, detail: "x is undefined" });
    expect(asProblem("odd")).toMatchObject({ status: -1, detail: "odd" });
  });
});

describe("secondsOf", () => {
  const now = Date.parse("2026-05-01T08:00:00Z");
  it.each([
    [null, null],
    ["", null],
    ["12", 12],
    ["-3", 0],
    ["Fri, 01 May 2026 08:00:30 GMT", 30],
    ["Fri, 01 May 2026 07:00:00 GMT", 0],
    ["soon", null],
  ])("%j is %j", (header, seconds) => expect(secondsOf(header, now)).toBe(seconds));
});

describe("placedErrors", () => {
  const problem = problemOf(body, new Response("", { status: 422 }));

  it("puts each beside its field, and keeps what has none", () => {
    const { fields, rest } = placedErrors(problem, ["cron", "command/argv", "every"]);
    expect(fields).toEqual({ cron: "is no cron", "command/argv": "is too long" });
    expect(rest?.wrongs).toEqual([body.errors[2]]);
    expect(rest?.detail).toBe(body.detail);
  });

  it("leaves nothing when everything has its place", () => {
    const one = new ProblemError("Unprocessable Content", 422, "one", null, [{ where: "body", pointer: "/a/b", detail: "no" }]);
    expect(placedErrors(one, ["a"])).toEqual({ fields: { a: "no" }, rest: null });
    expect(placedErrors(one, ["a", "a/b"]).fields).toEqual({ "a/b": "no" });
    expect(placedErrors(one, ["ab"]).rest?.wrongs).toHaveLength(1);
  });

  it("says nothing of no error, and keeps one that has no places", () => {
    expect(placedErrors(null, ["a"])).toEqual({ fields: {}, rest: null });
    expect(placedErrors(new ProblemError("Conflict", 409, "it runs"), ["a"]).rest?.detail).toBe("it runs");
  });

  it("joins what is said twice of one field", () => {
    const twice = new ProblemError("x", 422, null, null, [
      { where: "body", pointer: "/a", detail: "short" },
      { where: "body", pointer: "/a", detail: "odd" },
    ]);
    expect(placedErrors(twice, ["a"]).fields.a).toBe("short; odd");
  });
});
