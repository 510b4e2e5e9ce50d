import { act, configure, screen, within } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { beforeEach, expect, it, vi } from "vitest";

import type { wire } from "@/api";
import { LiveHub } from "@/live";
import { operator, problem, renderPage, user, viewer, type Answers } from "@/testing/page";

import { Component } from "./JobPage";
import { detailed, fan, group, job, node } from "./testing";

const JOB = "GET /api/v1/jobs/7";
const GRAPH = "GET /api/v1/jobs/7/graph";

// What draws is loaded when it is needed, which takes a busy machine a while.
configure({ asyncUtilTimeout: 10_000 });
vi.setConfig({ testTimeout: 30_000 });

beforeEach(() => {
  // There is nothing to draw on here; what is computed is tested beside it.
  vi.spyOn(HTMLCanvasElement.prototype, "getContext").mockReturnValue(null);
});

function shown(given: wire.JobShown, more: Answers = {}, options: Parameters<typeof renderPage>[1] = {}) {
  const graph = fan(20);
  return renderPage(<Component />, {
    path: "/jobs/:id",
    at: "/jobs/7",
    answers: { [JOB]: given, [GRAPH]: { job: given, ...graph, complete: true }, ...more },
    ...options,
  });
}

it("shows the job and its graph", async () => {
  shown(job({ reason: "error", state: "failed", total: 22 }));
  expect(await screen.findByRole("heading", { level: 1, name: "nightly" })).toBeVisible();
  expect(await screen.findByRole("group", { name: "Graph of nightly" })).toBeVisible();
  expect(screen.getByRole("application", { name: /3 groups of tasks/ })).toBeVisible();
  expect(screen.getByText("after success")).toBeVisible();
});

it("says what its end enqueues, and leads there", async () => {
  const hooks = { on_success: { task: "shop.notify", status: "enqueued" }, on_failure: { task: "shop.page us", status: "passed_over" } } as const;
  const given = detailed({ state: "completed", total: 22, hooks });
  shown(given, {}, { at: "/jobs/7?tab=details" });
  expect(await screen.findByRole("link", { name: "shop.notify" })).toHaveAttribute("href", "/tasks?q=name%3Ashop.notify");
  expect(screen.getByText("was enqueued")).toBeVisible();
  expect(screen.getByRole("link", { name: "shop.page us" })).toHaveAttribute("href", '/tasks?q=name%3A%22shop.page+us%22');
  expect(screen.getByText("does not run: it ended otherwise")).toBeVisible();
});

it("keeps what its end enqueues when the graph is read, which does not say it", async () => {
  const given = detailed({ total: 22, hooks: { on_success: { task: "shop.notify", status: "waiting" }, on_failure: null } });
  const { hooks: _, ...plain } = given;
  shown(given, { [GRAPH]: { job: plain, ...fan(20), complete: true } });
  expect(await screen.findByRole("group", { name: "Graph of nightly" })).toBeVisible();
  await userEvent.click(screen.getByRole("tab", { name: "Details" }));
  expect(await screen.findByText("waits for the end")).toBeVisible();
  expect(screen.getByText("nothing runs")).toBeVisible();
});

it("says what it cannot find", async () => {
  renderPage(<Component />, { path: "/jobs/:id", at: "/jobs/7", answers: { [JOB]: problem(404, "Not Found", "job 7 does not exist") } });
  expect(await screen.findByText("job 7 does not exist")).toBeVisible();
});

it("knows ids from other words", async () => {
  renderPage(<Component />, { path: "/jobs/:id", at: "/jobs/nightly" });
  expect(await screen.findByText("nightly is no id of a job")).toBeVisible();
});

it("cancels after asking how many that concerns", async () => {
  const { server } = shown(job(), { "POST /api/v1/jobs/7/cancel": job({ state: "cancelled" }) }, {});
  await userEvent.click(await screen.findByRole("button", { name: "Cancel job" }));
  expect(server.requests.some((asked) => asked.method === "POST")).toBe(false);
  await userEvent.click(screen.getByRole("button", { name: "Cancel 5 tasks", hidden: true }));
  expect(await screen.findByText("nightly is cancelled")).toBeVisible();
  expect(server.requests).toContainEqual({ method: "POST", path: "/api/v1/jobs/7/cancel", query: "", body: null });
});

it("runs what failed again, and says how many", async () => {
  const failed = job({ state: "failed", failed: 3, cancelled: 2, open: 0 });
  const { server } = shown(failed, { "POST /api/v1/jobs/7/retry-failed": { ids: [1, 2, 3, 4] } });
  await userEvent.click(await screen.findByRole("button", { name: "Retry failed" }));
  await userEvent.click(screen.getByRole("button", { name: "Retry 3 tasks", hidden: true }));
  expect(await screen.findByText("4 tasks run again")).toBeVisible();
  expect(server.requests).toContainEqual({ method: "POST", path: "/api/v1/jobs/7/retry-failed", query: "", body: null });
});

it("follows another run that somebody else began", async () => {
  const sockets: { onmessage?: (event: { data: string }) => void; close(): void }[] = [];
  const live = new LiveHub({
    open: () => {
      const socket = { close: () => undefined };
      sockets.push(socket);
      return socket as unknown as WebSocket;
    },
    after: () => 0,
    forget: () => undefined,
    now: Date.now,
    random: () => 0,
  });
  let given = job({ state: "failed", total: 10, completed: 7, failed: 3, open: 0, running: 0 });
  shown(given, { [JOB]: () => given, [GRAPH]: () => ({ job: given, ...fan(8), complete: true }) }, { live });
  expect(await screen.findByRole("button", { name: "Retry failed" })).toBeVisible();
  given = job({ state: "running", run_no: 2, total: 10, completed: 7, failed: 0, open: 3, running: 3 });
  const data = { job: "7", total: 10, completed: 7, failed: 0, cancelled: 0, at: "2026-05-01T08:00:09Z" };
  act(() => {
    for (const socket of sockets) socket.onmessage?.({ data: JSON.stringify({ type: "job_status_update", status: "running", seq: 12, data }) });
  });
  expect(await screen.findByRole("button", { name: "Cancel job" })).toBeVisible();
  expect(screen.queryByRole("button", { name: "Retry failed" })).toBeNull();
});

it("says why something was not done", async () => {
  shown(job({ state: "failed", open: 0 }), {
    "POST /api/v1/jobs/7/retry-failed": problem(409, "Conflict", "one of its tasks is still being stopped"),
  });
  await userEvent.click(await screen.findByRole("button", { name: "Retry failed" }));
  await userEvent.click(screen.getByRole("button", { name: "Retry 1 task", hidden: true }));
  expect(await screen.findByText("one of its tasks is still being stopped")).toBeVisible();
});

it("hides acts from those who may not", async () => {
  const answers = { [JOB]: job({ owner: "ada" }), [GRAPH]: { job: job({ owner: "ada" }), ...fan(3), complete: true } };
  for (const [session, acts] of [
    [viewer, false],
    [user, false],
    [operator, true],
    [{ ...user, name: "ada" }, true],
  ] as const) {
    const { unmount } = renderPage(<Component />, { path: "/jobs/:id", at: "/jobs/7", session, answers });
    expect(await screen.findByRole("heading", { level: 1, name: "nightly" })).toBeVisible();
    expect(screen.queryByRole("button", { name: "Cancel job" }) !== null, session.role).toBe(acts);
    expect(screen.queryByRole("button", { name: "Add a task" }) !== null, session.role).toBe(acts);
    unmount();
  }
});

it("adds a task, and refuses what cannot be one before it is sent", async () => {
  const { server } = shown(job(), {
    "GET /api/v1/registry": { items: [], commands: true, queues: [] },
    "POST /api/v1/jobs/7/tasks": { ids: [99] },
  });
  await userEvent.click(await screen.findByRole("button", { name: "Add a task" }));
  await userEvent.click(screen.getByRole("button", { name: "Add", hidden: true }));
  expect(screen.getByText("Say which task")).toBeVisible();
  await userEvent.type(screen.getByLabelText("Task"), "shop.work");
  await userEvent.type(screen.getByLabelText("Waits for"), "17, x");
  expect(screen.getByText("x is no id of a task")).toBeVisible();
  expect(server.requests.some((asked) => asked.method === "POST")).toBe(false);
  await userEvent.clear(screen.getByLabelText("Waits for"));
  await userEvent.type(screen.getByLabelText("Waits for"), "17");
  await userEvent.click(screen.getByRole("button", { name: "Add", hidden: true }));
  expect(await screen.findByText("Task 99 was added to nightly")).toBeVisible();
  expect(server.requests).toContainEqual({
    method: "POST",
    path: "/api/v1/jobs/7/tasks",
    query: "",
    body: { tasks: [{ name: "shop.work", kwargs: {}, kind: "on_success" }], after: [17] },
  });
});

it("leads to what waits for somebody", async () => {
  const given = job({ total: 1 });
  const nodes = [node(4, "shop.pay", { state: "pending_approval" })];
  shown(given, { [GRAPH]: { job: given, nodes, edges: [], complete: true } });
  expect(await screen.findByText(/1 task waits for somebody to approve/)).toBeVisible();
  expect(screen.getByRole("link", { name: "look at them" })).toHaveAttribute("href", "/tasks?q=job%3A7+state%3Apending_approval");
});

it("shows its tasks as a tree that unfolds by keys", async () => {
  const given = job({ total: 22 });
  const graph = fan(20);
  const { router } = renderPage(<Component />, {
    path: "/jobs/:id",
    at: "/jobs/7?tab=tasks",
    answers: { [JOB]: given, [GRAPH]: { job: given, ...graph, complete: true } },
  });
  const tree = await screen.findByRole("treegrid", { name: "Tasks of the job, by group" });
  const rows = within(tree).getAllByRole("row").slice(1);
  expect(rows).toHaveLength(3);
  const many = rows[1] as HTMLElement;
  expect(many).toHaveAttribute("aria-expanded", "false");
  many.focus();
  await userEvent.keyboard("{ArrowRight}");
  expect(within(tree).getAllByRole("row")).toHaveLength(24);
  expect(many).toHaveAttribute("aria-expanded", "true");
  expect(router.state.location.search).toContain("open=t2");
  await userEvent.keyboard("{ArrowDown}{ArrowDown}");
  expect(document.activeElement).toHaveTextContent("#3");
  await userEvent.keyboard("{ArrowLeft}{ArrowLeft}");
  expect(within(tree).getAllByRole("row")).toHaveLength(4);
  await userEvent.keyboard("{ArrowUp}{Enter}");
  expect(router.state.location.pathname).toBe("/tasks/1");
});

it("reads a large job by groups, and members of one page by page", async () => {
  const given = job({ total: 100_002 });
  const groups = [
    group("g0", { task: "shop.load", states: { completed: 1 } }),
    group("g1", { task: "shop.work", level: 1, count: 100_000, states: { completed: 60_000, pending: 40_000 }, first: 2 }),
  ];
  const edges = [{ group: "g1", upstream: "g0", kind: "on_success", count: 100_000 }];
  const { server } = renderPage(<Component />, {
    path: "/jobs/:id",
    at: "/jobs/7?tab=tasks&open=g1",
    answers: {
      [JOB]: given,
      "GET /api/v1/jobs/7/groups": { job: given, complete: true, merged: false, as_of: "2026-05-01T08:00:00Z", groups, edges },
      "GET /api/v1/jobs/7/groups/g1/tasks": ({ query }: { query: string }) =>
        query.includes("cursor=two")
          ? { items: [node(4, "shop.work")], next: null }
          : { items: [node(2, "shop.work"), node(3, "shop.work")], next: "two" },
    },
  });
  await userEvent.click(await screen.findByRole("button", { name: "Show more (2 of 100,000)" }));
  expect(await screen.findByText("#4")).toBeVisible();
  expect(screen.queryByRole("button", { name: /Show more \(/ })).toBeNull();
  expect(server.requests.some((asked) => asked.path.endsWith("/graph"))).toBe(false);
});
