import { act, screen, waitFor, within } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { expect, it, vi } from "vitest";

import type { wire } from "@/api";
import { LiveHub } from "@/live";
import { admin, operator, renderPage, user, viewer, type Answers, type Asked } from "@/testing/page";

import { Component } from "./TasksPage";

const task = (id: number, more: Partial<wire.TaskSummary> = {}): wire.TaskSummary => ({
  id,
  name: "tasks.send",
  label: null,
  kind: "function",
  queue: "mail",
  lane: "primary",
  priority: 0,
  state: "failed",
  reason: "error",
  dead_letter: false,
  attempt: 3,
  max_attempts: 3,
  run_no: 1,
  worker: null,
  job: null,
  owner: null,
  waiting_on: null,
  created_at: "2026-05-01T08:00:00Z",
  enqueued_at: "2026-05-01T08:00:00Z",
  eligible_at: "2026-05-01T08:00:00Z",
  started_at: "2026-05-01T08:00:01Z",
  finished_at: "2026-05-01T08:00:02Z",
  progress: null,
  error: { error_class: "builtins.TimeoutError", message: "no answer" },
  tags: [],
  ...more,
});

const page = (items: readonly wire.TaskSummary[], next: string | null = null) => ({
  items,
  next,
  searched: { tasks: items.length, complete: true, back_to: null },
});

const around: Answers = {
  "GET /api/v1/registry": { items: [], commands: true, queues: ["mail", "reports"] },
  "GET /api/v1/workers": [],
};

const rows = () => within(screen.getByRole("table", { name: "Tasks" })).getAllByRole("row").slice(1);
const listed = (requests: readonly Asked[]) =>
  requests.filter((asked) => asked.path === "/api/v1/tasks").map((asked) => decodeURIComponent(asked.query.replaceAll("+", " ")));

/** Says at will that something changed. */
function speakingHub(): { readonly hub: LiveHub; say(): void } {
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
  let pending = 0;
  const message = (): string => JSON.stringify({ type: "system", tasks: { pending: (pending += 1) }, workers: {} });
  return { hub, say: () => sockets.forEach((socket) => socket.onmessage?.({ data: message() })) };
}

it("asks by what the address says, and shows what is found", async () => {
  const { server } = renderPage(<Component />, {
    path: "/tasks",
    at: `/tasks?q=${encodeURIComponent('state:failed queue:mail error:"no answer" x')}`,
    answers: { ...around, "GET /api/v1/tasks": page([task(7)]) },
  });
  expect(await screen.findByRole("link", { name: "tasks.send #7" })).toHaveAttribute("href", "/tasks/7");
  expect(screen.getByText("TimeoutError")).toBeVisible();
  expect(listed(server.requests)).toEqual(["status=failed&queue=mail&error=no answer&text=x&limit=50"]);
});

it("keeps a search in the address", async () => {
  const { router, server } = renderPage(<Component />, {
    path: "/tasks",
    answers: { ...around, "GET /api/v1/tasks": ({ query }: Asked) => page(query.includes("queue=reports") ? [] : [task(7)]) },
  });
  await screen.findByRole("link", { name: "tasks.send #7" });
  await userEvent.type(screen.getByRole("combobox", { name: "Search tasks" }), "queue:rep{ArrowDown}{Enter}");
  expect(screen.getByRole("combobox")).toHaveValue("queue:reports ");
  await userEvent.keyboard("{Enter}");
  expect(await screen.findByText("Nothing is found")).toBeVisible();
  expect(router.state.location.search).toBe("?q=queue%3Areports");
  expect(listed(server.requests).at(-1)).toBe("queue=reports&limit=50");
  await userEvent.click(screen.getByRole("button", { name: "Show all tasks" }));
  expect(await screen.findByRole("link", { name: "tasks.send #7" })).toBeVisible();
});

it("does not search for what it cannot read", async () => {
  const { server } = renderPage(<Component />, { path: "/tasks", at: "/tasks?q=stat:failed", answers: around });
  expect(await screen.findByText("This search cannot be read")).toBeVisible();
  expect(screen.getByRole("alert")).toHaveTextContent("There is no key «stat:». Did you mean «state:»?");
  expect(listed(server.requests)).toEqual([]);
});

it("chooses a state by one click", async () => {
  const { router } = renderPage(<Component />, { path: "/tasks", at: "/tasks?q=queue:mail", answers: { ...around, "GET /api/v1/tasks": page([]) } });
  await userEvent.click(await screen.findByRole("button", { name: "Failed" }));
  expect(new URLSearchParams(router.state.location.search).get("q")).toBe("state:failed queue:mail");
  await userEvent.click(screen.getByRole("button", { name: "Failed" }));
  expect(new URLSearchParams(router.state.location.search).get("q")).toBe("queue:mail");
});

it("counts before it acts on rows, and tells what became of them", async () => {
  const { server } = renderPage(<Component />, {
    path: "/tasks",
    session: operator,
    answers: {
      ...around,
      "GET /api/v1/tasks": page([task(8), task(7), task(6)]),
      "POST /api/v1/tasks/retry": ({ body }: Asked) =>
        (body as { dry_run: boolean }).dry_run
          ? { dry_run: true, count: { n: 2, more: false }, answers: {}, until: "2026-05-01T08:00:05.123456Z" }
          : { dry_run: false, count: { n: 2, more: false }, answers: { retried: 1, refused: 1 }, until: null },
    },
  });
  await userEvent.click(await screen.findByRole("checkbox", { name: "Select tasks.send 8" }));
  await userEvent.click(screen.getByRole("checkbox", { name: "Select tasks.send 6" }));
  await userEvent.click(screen.getByRole("button", { name: "Retry" }));
  const dialog = await screen.findByRole("dialog", { name: "Retry 2 tasks?" });
  await userEvent.click(within(dialog).getByRole("button", { name: "Retry 2 tasks" }));
  expect(await screen.findByText("1 retried, 1 refused")).toBeVisible();
  const sent = server.requests.filter((asked) => asked.method === "POST").map((asked) => asked.body);
  const criteria = { id: [8, 6], status: ["failed", "cancelled", "completed"] };
  // What came between the count and the answer is not among what was agreed to.
  expect(sent).toEqual([{ ...criteria, dry_run: true }, { ...criteria, until: "2026-05-01T08:00:05.123456Z", dry_run: false }]);
  expect(screen.queryByRole("region", { name: "Chosen tasks" })).toBeNull();
});

it("acts on all that a search finds, when somebody says so", async () => {
  const { server } = renderPage(<Component />, {
    path: "/tasks",
    at: "/tasks?q=queue:mail",
    answers: {
      ...around,
      "GET /api/v1/tasks": page([task(8)], "next"),
      "POST /api/v1/tasks/delete": { dry_run: true, count: { n: 0, more: false }, answers: {} },
    },
  });
  await userEvent.click(await screen.findByRole("checkbox", { name: "Select all 1 that are shown" }));
  await userEvent.click(screen.getByRole("button", { name: "Choose all that are found" }));
  await userEvent.click(screen.getByRole("button", { name: "Delete" }));
  expect(await screen.findByText("None of these can be deleted")).toBeVisible();
  expect(server.requests.filter((asked) => asked.method === "POST").map((asked) => asked.body)).toEqual([{ queue: ["mail"], dry_run: true }]);
});

it.each([
  [admin, true],
  [operator, true],
  [user, false],
  [viewer, false],
])("lets those choose rows who may act on many", async (session, mayAct) => {
  renderPage(<Component />, { path: "/tasks", session, answers: { ...around, "GET /api/v1/tasks": page([task(8)]) } });
  await screen.findByRole("link", { name: "tasks.send #8" });
  expect(screen.queryAllByRole("checkbox")).toHaveLength(mayAct ? 2 : 0);
  expect(screen.queryAllByRole("link", { name: "New task" })).toHaveLength(session.role === "viewer" ? 0 : 1);
});

it("counts what arrives and moves nothing until somebody asks; rows change where they are", async () => {
  const { hub, say } = speakingHub();
  let now = [task(8, { state: "running", finished_at: null, error: null, reason: null }), task(7)];
  renderPage(<Component />, { path: "/tasks", live: hub, answers: { ...around, "GET /api/v1/tasks": () => page(now) } });
  await screen.findByRole("link", { name: "tasks.send #8" });
  now = [task(10), task(9), task(8, { state: "completed", error: null, reason: null }), task(7)];
  act(say);
  const news = await screen.findByRole("button", { name: /2 new/ }, { timeout: 4000 });
  expect(rows().map((row) => within(row).getAllByRole("link")[0]?.textContent)).toEqual(["tasks.send#8", "tasks.send#7"]);
  expect(rows()[0]).toHaveTextContent("completed");
  await userEvent.click(news);
  await waitFor(() => expect(rows()).toHaveLength(4));
  expect(screen.queryByRole("button", { name: /new ·/ })).toBeNull();
});

it("ends a look before it begins another, however much changes", async () => {
  vi.useFakeTimers({ shouldAdvanceTime: true });
  try {
    const { hub, say } = speakingHub();
    const held: ((page: unknown) => void)[] = [];
    const { server } = renderPage(<Component />, {
      path: "/tasks",
      live: hub,
      answers: {
        ...around,
        "GET /api/v1/tasks": () => (listed(server.requests).length <= 2 ? page([task(8)]) : new Promise((answer) => held.push(answer))),
      },
    });
    await screen.findByRole("link", { name: "tasks.send #8" });
    const change = async (): Promise<void> => {
      act(say);
      await act(() => vi.advanceTimersByTimeAsync(1600));
    };
    await change();
    await waitFor(() => expect(listed(server.requests)).toHaveLength(2));
    for (let time = 0; time < 4; time += 1) await change();
    expect(held).toHaveLength(1);
    held[0]?.(page([task(9), task(8)]));
    expect(await screen.findByRole("button", { name: /1 new/ })).toBeVisible();
  } finally {
    vi.useRealTimers();
  }
});

it("does not put back what an act has changed while it looked", async () => {
  const { hub, say } = speakingHub();
  const running = task(8, { state: "running", finished_at: null, error: null, reason: null });
  const cancelled = task(8, { state: "cancelled", error: null, reason: null });
  let state = running;
  let finish: () => void = () => undefined;
  const { server } = renderPage(<Component />, {
    path: "/tasks",
    session: operator,
    live: hub,
    answers: {
      ...around,
      "GET /api/v1/tasks": () => {
        const now = page([state]);
        if (listed(server.requests).length !== 2) return now;
        return new Promise((answer) => (finish = () => answer(now)));
      },
      "POST /api/v1/tasks/cancel": ({ body }: Asked) => {
        const { dry_run } = body as { dry_run: boolean };
        if (!dry_run) state = cancelled;
        return { dry_run, count: { n: 1, more: false }, answers: dry_run ? {} : { cancelled: 1 } };
      },
    },
  });
  await screen.findByRole("link", { name: "tasks.send #8" });
  act(say);
  await waitFor(() => expect(listed(server.requests)).toHaveLength(2));
  await userEvent.click(screen.getByRole("checkbox", { name: "Select tasks.send 8" }));
  await userEvent.click(screen.getByRole("button", { name: "Cancel" }));
  await userEvent.click(within(await screen.findByRole("dialog", { name: "Cancel 1 task?" })).getByRole("button", { name: "Cancel 1 task" }));
  await waitFor(() => expect(rows()[0]).toHaveTextContent("cancelled"));
  expect(listed(server.requests)).toHaveLength(3);
  finish();
  await waitFor(() => expect(listed(server.requests)).toHaveLength(4));
  expect(rows()[0]).toHaveTextContent("cancelled");
});

const part = (items: readonly wire.TaskSummary[], next: string) => ({
  items,
  next,
  searched: { tasks: 1000, complete: false, back_to: "2026-05-01T08:00:00Z" },
});

it("looks on by itself where a page ended before it found enough", async () => {
  const { server } = renderPage(<Component />, {
    path: "/tasks",
    at: "/tasks?q=lost",
    answers: {
      ...around,
      "GET /api/v1/tasks": ({ query }: Asked) =>
        query.includes("cursor=b") ? page([task(3)]) : query.includes("cursor=a") ? part([task(7)], "b") : part([], "a"),
    },
  });
  expect(await screen.findByRole("link", { name: "tasks.send #3" })).toBeVisible();
  expect(screen.getByRole("link", { name: "tasks.send #7" })).toBeVisible();
  expect(listed(server.requests).filter((query) => query.includes("cursor"))).toHaveLength(2);
});

it("asks before it looks on after some seconds", async () => {
  vi.useFakeTimers({ shouldAdvanceTime: true });
  try {
    const { server } = renderPage(<Component />, {
      path: "/tasks",
      at: "/tasks?q=lost",
      answers: {
        ...around,
        "GET /api/v1/tasks": () => new Promise((answer) => window.setTimeout(() => answer(part([], "further")), 1000)),
      },
    });
    const further = (): number => listed(server.requests).filter((query) => query.includes("cursor")).length;
    await act(() => vi.advanceTimersByTimeAsync(12_000));
    const button = await screen.findByRole("button", { name: "Look further back" });
    expect(screen.getByText("Nothing yet")).toBeVisible();
    const before = further();
    expect(before).toBeGreaterThan(2);
    expect(before).toBeLessThan(7);
    await userEvent.setup({ advanceTimers: vi.advanceTimersByTime }).click(button);
    await waitFor(() => expect(further()).toBe(before + 1));
  } finally {
    vi.useRealTimers();
  }
});

it("says what to do where there is nothing yet", async () => {
  renderPage(<Component />, { path: "/tasks", answers: { ...around, "GET /api/v1/tasks": page([]) } });
  expect(await screen.findByText("No tasks yet")).toBeVisible();
  expect(screen.getAllByRole("link", { name: "New task" })).toHaveLength(2);
});
