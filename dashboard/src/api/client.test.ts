import { afterEach, describe, expect, it, vi } from "vitest";

import { AnsweringServer, problem, type Answers } from "@/testing/page";

import { api, call, csrfOf, whenSignedOut } from "./client";
import { ProblemError } from "./problem";
import { retryDelay } from "./queries";

function answering(answers: Answers): { server: AnsweringServer; headers: Headers[] } {
  const server = new AnsweringServer(answers);
  const headers: Headers[] = [];
  vi.stubGlobal("fetch", (request: Request) => {
    headers.push(request.headers);
    return server.fetch(request);
  });
  return { server, headers };
}

async function refused(promise: Promise<unknown>): Promise<ProblemError> {
  return promise.then(
    () => {
      throw new Error("it was not refused");
    },
    (error: unknown) => error as ProblemError,
  );
}

afterEach(() => {
  document.cookie = "headrace_csrf=; max-age=0";
  whenSignedOut(() => undefined);
});

describe("csrfOf", () => {
  it.each([
    ["", null],
    ["a=b; headrace_csrf=x%3Dy; c=d", "x=y"],
    ["headrace_csrf=a=b", "a=b"],
    ["not_headrace_csrf=1", null],
  ])("of %j is %j", (cookies, token) => expect(csrfOf(cookies)).toBe(token));
});

describe("call", () => {
  it("gives the data", async () => {
    answering({ "GET /api/v1/queues": [{ name: "mail" }] });
    expect(await call(api.GET("/api/v1/queues"))).toEqual([{ name: "mail" }]);
  });

  it("shows the token of the session with every act, and with acts alone", async () => {
    document.cookie = "headrace_csrf=tok";
    const { headers } = answering({ "GET /api/v1/queues": [], "POST /api/v1/queues/a b/pause": {} });
    await call(api.GET("/api/v1/queues"));
    await call(api.POST("/api/v1/queues/{name}/pause", { params: { path: { name: "a b" } } }));
    expect(headers.map((each) => each.get("X-CSRF-Token"))).toEqual([null, "tok"]);
  });

  it("throws what the server says, with when to come again", async () => {
    answering({ "GET /api/v1/queues": problem(429, "Too Many Requests", "1200 a minute", { "Retry-After": "3" }) });
    const error = await refused(call(api.GET("/api/v1/queues")));
    expect(error).toBeInstanceOf(ProblemError);
    expect(error).toMatchObject({ status: 429, detail: "1200 a minute", retryAfter: 3, requestId: "r1" });
  });

  it("says that nobody answered", async () => {
    vi.stubGlobal("fetch", () => Promise.reject(new TypeError("Failed to fetch")));
    expect(await refused(call(api.GET("/api/v1/queues")))).toMatchObject({ status: 0 });
  });

  it("does not make a problem of a question that was taken back", async () => {
    vi.stubGlobal("fetch", () => Promise.reject(new DOMException("gone", "AbortError")));
    expect((await refused(call(api.GET("/api/v1/queues")))).name).toBe("AbortError");
  });

  it("repeats a parameter that is a list", async () => {
    const { server } = answering({ "GET /api/v1/tasks": { items: [], next: null } });
    await call(api.GET("/api/v1/tasks", { params: { query: { queue: ["a", "b&c"] } } }));
    expect(server.requests[0]?.query).toBe("queue=a&queue=b%26c");
  });

  it("tells when nobody is logged in any more, but not for a wrong password", async () => {
    const out = vi.fn();
    whenSignedOut(out);
    answering({ "GET /api/v1/queues": problem(401, "Unauthorized"), "POST /api/v1/session": problem(401, "Unauthorized") });
    await refused(call(api.POST("/api/v1/session", { body: { name: "a", password: "b" } })));
    expect(out).not.toHaveBeenCalled();
    await refused(call(api.GET("/api/v1/queues")));
    expect(out).toHaveBeenCalledOnce();
  });
});

describe("retryDelay", () => {
  it("grows, and stops growing", () => {
    expect([0, 1, 2, 9].map((failures) => retryDelay(failures, null))).toEqual([500, 1000, 2000, 10_000]);
  });

  it("does as the server asks, within reason", () => {
    expect([0, 3, 3600].map((after) => retryDelay(0, after))).toEqual([1000, 3000, 60_000]);
  });
});
