import { act, screen, waitFor, within } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { expect, it } from "vitest";

import type { wire } from "@/api";
import type { Session } from "@/app/roles";
import { LiveHub } from "@/live";
import { admin, operator, problem, renderPage, user, viewer, type Answers, type Asked } from "@/testing/page";

import { Component } from "./TaskPage";

const attempt = (claim: number, more: Partial<wire.AttemptShown> = {}): wire.AttemptShown => ({
  claim_no: claim,
  run_no: 1,
  attempt: claim,
  state: "failed",
  charged: true,
  worker: "host:1",
  executor: "coroutine",
  claimed_at: "2026-05-01T08:00:00Z",
  started_at: "2026-05-01T08:00:01Z",
  finished_at: "2026-05-01T08:00:02Z",
  error: { error_class: "builtins.TimeoutError", message: `no answer ${claim}` },
  traceback: `Traceback (most recent call last):\n  File "/srv/app/tasks.py", line ${claim}, in send\n    deliver()\nTimeoutError: no answer ${claim}\n`,
  exit_code: null,
  late_state: null,
  late_at: null,
  log_ref: "",
  ...more,
});

const none: wire.Relatives = { items: [], more: false };

function detail(more: Partial<wire.TaskDetail> = {}): wire.TaskDetail {
  return {
    id: 5,
    name: "tasks.send",
    label: null,
    kind: "function",
    queue: "mail",
    lane: "primary",
    priority: 0,
    state: "failed",
    reason: "error",
    dead_letter: false,
    attempt: 2,
    max_attempts: 2,
    run_no: 1,
    worker: "host:1",
    job: null,
    owner: null,
    waiting_on: null,
    created_at: "2026-05-01T08:00:00Z",
    enqueued_at: "2026-05-01T08:00:00Z",
    eligible_at: "2026-05-01T08:00:00Z",
    started_at: "2026-05-01T08:00:01Z",
    finished_at: "2026-05-01T08:00:02Z",
    progress: null,
    error: { error_class: "builtins.TimeoutError", message: "no answer 2" },
    arguments: { to: "ada@example.org", password: "[redacted]" },
    metadata: {},
    tags: [],
    losses: 0,
    critical: true,
    claimed_at: null,
    expires_at: null,
    cancelling_at: null,
    result_expires_at: null,
    has_result: false,
    timings: { waited: 1, ran: 1 },
    approval: null,
    attempts: [attempt(1), attempt(2)],
    more_attempts: false,
    parents: none,
    children: none,
    job_name: null,
    schedule: null,
    trace_id: null,
    trace_url: null,
    reenqueued_from: null,
    ...more,
  };
}

function open(task: wire.TaskDetail | Response, answers: Answers = {}, session: Session = admin, live?: LiveHub) {
  return renderPage(<Component />, {
    path: "/tasks/:id",
    at: "/tasks/5",
    session,
    ...(live === undefined ? {} : { live }),
    answers: { "GET /api/v1/tasks/5": task, "GET /api/v1/tasks/5/logs": { items: [], next: null }, ...answers },
  });
}

it("shows how it failed: the last error, its frames, every attempt and the arguments", async () => {
  open(detail());
  const error = await screen.findByRole("region", { name: "Error" });
  expect(error).toHaveTextContent("builtins.TimeoutError");
  expect(within(error).getByText(/tasks\.py:2/)).toBeVisible();
  const table = within(screen.getByRole("region", { name: "Timeline" })).getByRole("table");
  expect(within(table).getAllByRole("row")).toHaveLength(3);
  expect(within(table).getAllByRole("columnheader").map((head) => head.textContent)).toContain("Waited");
  expect(screen.getByRole("region", { name: "the arguments" })).toHaveTextContent("[redacted]");
});

it("shows the error of another attempt, and keeps the choice in the address", async () => {
  const { router } = open(detail());
  await userEvent.click((await screen.findAllByRole("button", { name: "Error" }))[0] as HTMLElement);
  expect(screen.getByRole("region", { name: "Error" })).toHaveTextContent("no answer 1");
  expect(router.state.location.search).toBe("?attempt=1");
});

it("retries it", async () => {
  const { server } = open(detail(), { "POST /api/v1/tasks/5/retry": { ids: [5, 6] } });
  await userEvent.click(await screen.findByRole("button", { name: "Retry" }));
  expect(await screen.findByText("It runs again, and 1 more that had been cancelled because of it")).toBeVisible();
  expect(server.requests.filter((asked) => asked.path === "/api/v1/tasks/5").length).toBeGreaterThan(1);
});

it("cancels it after a question, and says why it could not", async () => {
  const running = detail({ state: "running", reason: null, finished_at: null, error: null, attempts: [] });
  open(running, { "POST /api/v1/tasks/5/cancel": problem(409, "Task has ended", "task 5 had ended before") });
  await userEvent.click(await screen.findByRole("button", { name: "Cancel" }));
  await userEvent.click(screen.getByRole("button", { name: "Cancel the task" }));
  expect(await screen.findByText("It was not cancelled")).toBeVisible();
  expect(screen.getByText("task 5 had ended before")).toBeVisible();
});

it("shows what would be cleared before it is", async () => {
  const items = [5, 6].map((id) => ({ id, name: "tasks.send", label: null, state: "failed" as const }));
  const { server } = open(detail(), {
    "POST /api/v1/tasks/5/clear": ({ body }: Asked) => ({ ids: [5, 6], count: { n: 2, more: false }, items, ...(body as object) }),
  });
  await userEvent.click(await screen.findByRole("button", { name: "Clear with what follows" }));
  const dialog = await screen.findByRole("dialog", { name: "Clear with what follows" });
  expect(await within(dialog).findAllByRole("listitem")).toHaveLength(2);
  await userEvent.click(within(dialog).getByRole("button", { name: "Run 2 tasks again" }));
  expect(await screen.findByText("2 run again")).toBeVisible();
  const sent = server.requests.filter((asked) => asked.path.endsWith("/clear")).map((asked) => asked.body);
  expect(sent).toEqual([{ dry_run: true }, { dry_run: false }]);
});

it("says why it waits, and mends it", async () => {
  const waiting = detail({ state: "pending", reason: null, finished_at: null, error: null, attempts: [] });
  const reasons = [{ what: "its queue mail is paused", mend: "headrace queues resume mail", act: { kind: "resume_queue", subject: "mail" } }];
  const { server } = open(waiting, {
    "GET /api/v1/tasks/5/explain": { id: 5, name: "tasks.send", state: "pending", reasons },
    "POST /api/v1/queues/mail/resume": {},
  });
  const why = await screen.findByRole("region", { name: "Why does this wait?" });
  expect(await within(why).findByText("Its queue mail is paused.")).toBeVisible();
  expect(within(why).getByText("headrace queues resume mail")).toBeVisible();
  await userEvent.click(within(why).getByRole("button", { name: "Resume mail" }));
  expect(await screen.findByText("mail goes on")).toBeVisible();
  expect(server.requests).toContainEqual({ method: "POST", path: "/api/v1/queues/mail/resume", query: "", body: null });
});

it("shows a result, and its secrets to who asks for them and may", async () => {
  const done = detail({ state: "completed", reason: null, error: null, has_result: true, attempts: [attempt(1, { state: "succeeded", error: null, traceback: null })] });
  const { server } = open(done, {
    "GET /api/v1/tasks/5/result": ({ query }: Asked) => ({ id: 5, state: "completed", value: { token: query === "" ? "[redacted]" : "s3" }, error: null, expires_at: null }),
  });
  expect(await screen.findByRole("region", { name: "the result" })).toHaveTextContent("[redacted]");
  expect(screen.queryByRole("region", { name: "Error" })).toBeNull();
  await userEvent.click(screen.getByRole("button", { name: "Show secrets" }));
  await waitFor(() => expect(screen.getByRole("region", { name: "the result" })).toHaveTextContent("s3"));
  expect(server.requests.at(-1)?.query).toBe("reveal=true");
});

const ADMIN_ASKED: wire.Approval = { status: "pending", role: "admin", by: null, at: null, note: null };

it.each<[string, Session, number]>([
  ["an operator", operator, 0],
  ["an admin", admin, 1],
])("says which role an approval asks for, and leaves it to them: %s", async (_, session, n) => {
  const reason = { what: "it waits for somebody to approve it", mend: null, act: { kind: "approve_task", subject: "5" } };
  const explain = { "GET /api/v1/tasks/5/explain": { id: 5, name: "x", state: "pending_approval", reasons: [reason] } };
  open(detail({ state: "pending_approval", finished_at: null, approval: ADMIN_ASKED }), explain, session);
  expect(await screen.findByText("asks for admin")).toBeVisible();
  const why = await screen.findByRole("region", { name: "Why does this wait?" });
  expect(await within(why).findByText(/somebody to approve it/)).toBeVisible();
  expect(within(why).queryAllByRole("button", { name: "Approve" })).toHaveLength(n);
});

it.each<[string, Session, wire.TaskDetail, readonly string[]]>([
  ["an operator", operator, detail({ owner: "uma" }), ["Retry", "Clear with what follows", "Why is it so?", "Delete"]],
  ["whose it is", user, detail({ owner: "uma" }), ["Retry", "Clear with what follows", "Why is it so?", "Delete"]],
  ["whose it is not", user, detail({ owner: "ada" }), ["Why is it so?"]],
  ["a viewer", viewer, detail(), ["Why is it so?"]],
  ["an operator who is asked", operator, detail({ state: "pending_approval", finished_at: null }), ["Approve", "Reject", "Cancel", "Delete"]],
  ["an operator where an admin is asked", operator, detail({ state: "pending_approval", finished_at: null, approval: ADMIN_ASKED }), ["Cancel", "Delete"]],
  ["a viewer of what waits for a word", viewer, detail({ state: "pending_approval", finished_at: null }), []],
])("offers to %s what they may do", async (_, session, task, names) => {
  open(task, { "GET /api/v1/tasks/5/explain": { id: 5, name: "x", state: "x", reasons: [] } }, session);
  const heading = (await screen.findByRole("heading", { level: 1, name: "tasks.send" })).closest("header") as HTMLElement;
  expect(within(heading).queryAllByRole("button").map((button) => button.textContent)).toEqual(names);
  expect(within(heading).queryAllByRole("link", { name: "Edit and enqueue again" })).toHaveLength(names.includes("Delete") ? 1 : 0);
});

it("leads to its job, its neighbours and what it was copied from", async () => {
  const relative = { id: 4, name: "tasks.load", label: null, state: "completed", kind: "on_success", passes: true } as const;
  open(detail({ job: 9, job_name: "nightly", parents: { items: [relative], more: false }, reenqueued_from: 3, schedule: "at night", trace_id: "abc" }));
  const where = await screen.findByRole("region", { name: "Where it belongs" });
  expect(within(where).getByRole("link", { name: "nightly" })).toHaveAttribute("href", "/jobs/9");
  expect(within(where).getByRole("link", { name: "tasks.load #4" })).toHaveAttribute("href", "/tasks/4");
  expect(within(where).getByRole("link", { name: "#3" })).toHaveAttribute("href", "/tasks/3");
  expect(within(where).getByRole("link", { name: "at night" })).toHaveAttribute("href", "/schedules/at%20night");
  expect(within(where).getByText("abc")).toBeVisible();
  expect(within(where).queryByRole("link", { name: "abc" })).toBeNull();
});

it("leads to its trace where the server knows where traces are looked at", async () => {
  open(detail({ trace_id: "abc", trace_url: "https://jaeger.example.org/trace/abc" }));
  const where = await screen.findByRole("region", { name: "Where it belongs" });
  expect(within(where).getByRole("link", { name: "abc" })).toHaveAttribute("href", "https://jaeger.example.org/trace/abc");
});

it("says that there is no such task", async () => {
  open(problem(404, "Not Found", "no task 5"));
  expect(await screen.findByText("There is no task 5")).toBeVisible();
});

it("shows progress and lines as they are said", async () => {
  const sockets: { onmessage?: (event: { data: string }) => void; close(): void }[] = [];
  const hub = new LiveHub({
    open: () => {
      const socket = { close: () => undefined };
      sockets.push(socket);
      return socket as unknown as WebSocket;
    },
    after: (delay, run) => window.setTimeout(run, delay),
    forget: (handle) => window.clearTimeout(handle),
    now: Date.now,
    random: () => 0.5,
  });
  const say = (message: object): void => act(() => sockets.forEach((socket) => socket.onmessage?.({ data: JSON.stringify(message) })));
  const running = detail({ state: "running", reason: null, finished_at: null, error: null, attempt: 0, attempts: [attempt(1, { state: "running", finished_at: null, error: null, traceback: null })] });
  const lines = [{ claim_no: 1, seq: 0, at: "2026-05-01T08:00:01Z", stream: "info", line: "first" }];
  open(running, { "GET /api/v1/tasks/5/logs": { items: lines, next: null } }, admin, hub);
  const log = await screen.findByRole("region", { name: "Log lines" });
  expect(log).toHaveTextContent("first");
  say({ type: "task_log_message", task: "5", claim_no: 1, seq: 1, at: "2026-05-01T08:00:02Z", stream: "error", message: "\u001b[31msecond\u001b[0m" });
  say({ type: "task_log_message", task: "5", claim_no: 1, seq: 0, at: "2026-05-01T08:00:01Z", stream: "info", message: "first" });
  await waitFor(() => expect(log).toHaveTextContent("second"));
  expect(within(log).getAllByText("first")).toHaveLength(1);
  expect(log).not.toHaveTextContent("[31m");
  const update = { status: "running", reason: null, attempt: 0, max_attempts: 2, claim_no: 1, run_no: 1, error_class: null, error_message: null };
  say({ type: "task_update", task: "5", ...update, progress: { value: 3, total: 10, message: "third row" } });
  await waitFor(() => expect(screen.getByRole("progressbar", { name: "Progress" })).toHaveAttribute("aria-valuenow", "3"));
  expect(screen.getByText("3 of 10 · third row")).toBeVisible();
  await userEvent.type(screen.getByLabelText("Search in the log"), "sec{Enter}");
  expect(log.querySelector("mark")).toHaveTextContent("sec");
  await userEvent.click(screen.getByRole("checkbox", { name: "Only lines with it" }));
  expect(log).not.toHaveTextContent("first");
  expect(screen.getByRole("link", { name: "Download" })).toHaveAttribute("href", "/api/v1/tasks/5/logs/download");
});

it("says what each colour of the timeline means", async () => {
  open(detail());
  const timeline = await screen.findByRole("region", { name: "Timeline" });
  const said = [...timeline.querySelectorAll("li")].map((item) => item.textContent.trim());
  expect(said).toEqual(["waiting", "claimed, not started", "running", "succeeded", "failed"]);
});

it("reads the executions before the last ones when they are asked for", async () => {
  const many = (from: number, to: number): wire.AttemptShown[] => Array.from({ length: to - from + 1 }, (_, n) => attempt(from + n));
  const pages = (asked: Asked): Response => {
    const cursor = new URLSearchParams(asked.query).get("cursor");
    const [items, next] = cursor === null ? [many(4, 33), "c1"] : cursor === "c1" ? [many(1, 3), null] : [[], null];
    return Response.json(items, { headers: next === null ? {} : { Link: `</api/v1/tasks/5/attempts?limit=500&cursor=${next}>; rel="next"` } });
  };
  const long = detail({ attempt: 33, max_attempts: 100, attempts: many(7, 33), more_attempts: true });
  const answers = { "GET /api/v1/tasks/5": long, "GET /api/v1/tasks/5/logs": { items: [], next: null }, "GET /api/v1/tasks/5/attempts": pages };
  const { server } = renderPage(<Component />, { path: "/tasks/:id", at: "/tasks/5", session: viewer, answers });
  // By their elements: to look for roles among so many takes seconds.
  const rows = (): number => document.querySelectorAll("table tbody tr").length;
  await userEvent.click(await screen.findByText("2 earlier ones, and more before them"));
  expect(rows()).toBe(27);
  await userEvent.click(screen.getByText("Earlier ones"));
  await waitFor(() => expect(rows()).toBe(30));
  await userEvent.click(screen.getByText("Earlier ones"));
  await waitFor(() => expect(rows()).toBe(33));
  expect(screen.queryByText("Earlier ones")).toBeNull();
  expect(server.requests.filter((asked) => asked.path.endsWith("/attempts"))).toHaveLength(2);
}, 20_000);

it("finds the execution that an address names, however long ago it was", async () => {
  const last = [attempt(301)];
  const first = [attempt(1), attempt(2), attempt(301)];
  const long = detail({ attempts: last, more_attempts: true, error: { error_class: "builtins.TimeoutError", message: "no answer 301" } });
  const answers = { "GET /api/v1/tasks/5": long, "GET /api/v1/tasks/5/logs": { items: [], next: null }, "GET /api/v1/tasks/5/attempts": first };
  renderPage(<Component />, { path: "/tasks/:id", at: "/tasks/5?attempt=2", session: viewer, answers });
  expect(await screen.findByText("no answer 2")).toBeVisible();
});
