import { act, screen, within } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { afterEach, describe, expect, it, vi } from "vitest";

import type { wire } from "@/api";
import { LiveHub, type OverviewMessage } from "@/live";
import { problem, renderPage, type Answers } from "@/testing/page";

import { searchFor, shortClass } from "./FailingErrors";
import { backlogOf } from "./QueueDepths";
import { textOf } from "./StateCounts";
import { workersText } from "./Summary";
import { Component } from "./OverviewPage";

const none = { p50: null, p90: null, p95: null, p99: null, max: null };
const some = { p50: 0.01, p90: 0.2, p95: 0.4, p99: 1.2, max: 3 };
const outcomes = (completed: number, failed: number) => ({ completed, failed, cancelled: 0, rejected: 0 });

const shown: wire.OverviewShown = {
  range: "1h",
  since: "2026-05-01T07:00:00Z",
  until: "2026-05-01T08:00:00Z",
  bucket: 60,
  as_of: "2026-05-01T08:00:00Z",
  whose: "all",
  finished: {
    complete: true,
    series: [
      { at: "2026-05-01T07:58:00Z", ...outcomes(120, 6) },
      { at: "2026-05-01T07:59:00Z", ...outcomes(60, 0) },
    ],
    totals: outcomes(900, 100),
    queues: [{ queue: "mail", ...outcomes(900, 100), per_second: 1.5 }],
    names: [{ name: "tasks.send", queue: "mail", ...outcomes(900, 100) }],
  },
  latency: {
    sampled: 180,
    waiting: some,
    running: some,
    series: [
      { at: "2026-05-01T07:58:00Z", sampled: 0, waiting: none, running: none },
      { at: "2026-05-01T07:59:00Z", sampled: 60, waiting: some, running: some },
    ],
  },
  states: { pending: { n: 10_000, more: true }, running: { n: 12, more: false }, failed: { n: 0, more: false } },
  queues: [
    { name: "mail", paused: true, depths: { primary: 12, retry: 3, scheduled: 40, running: 4 }, retry_ratio: 0.3 },
    { name: "reports", paused: false, depths: { primary: 10_001 }, retry_ratio: 0.3 },
  ],
  depths_at: "2026-05-01T08:00:00Z",
  depths: [
    { at: "2026-05-01T07:58:00Z", depths: { primary: 30, retry: 2, scheduled: 40, claimed: 1, running: 4 } },
    { at: "2026-05-01T07:59:00Z", depths: {} },
  ],
  workers: { alive: 2, silent: 1, stopping: 0, hosts: 1 },
  dead_letters: { n: 4, more: false },
  failing: {
    items: [
      {
        key: "5f2c",
        error_class: "builtins.TimeoutError",
        message: "no answer within # s",
        count: { n: 31, more: false },
        names: ["tasks.send", "tasks.poll"],
        queues: ["mail"],
        newest_at: "2026-05-01T07:59:00Z",
        oldest_at: "2026-05-01T07:10:00Z",
        example: 17,
      },
    ],
    searched: { tasks: 31, complete: true, back_to: null },
  },
};

function overview(answer: unknown = shown, live?: LiveHub, more: Answers = {}) {
  return renderPage(<Component />, {
    path: "/",
    answers: { "GET /api/v1/overview": answer, ...more },
    ...(live === undefined ? {} : { live }),
  });
}

afterEach(() => vi.useRealTimers());

describe("the overview", () => {
  it("shows figures, queues with their lanes, states, failures and the busiest tasks", async () => {
    const { server } = overview();
    const glance = await screen.findByRole("region", { name: "At a glance" });
    expect(within(glance).getByRole("link", { name: /Failed.*10 %/ })).toHaveAttribute("href", "/tasks?q=state:failed");
    expect(within(glance).getByText("1 silent")).toBeVisible();
    expect(server.requests.find((each) => each.path === "/api/v1/overview")?.query).toBe("range=1h");

    const mail = within(screen.getByRole("table", { name: "Queues and lanes" })).getAllByRole("row")[1];
    expect(within(mail as HTMLElement).getAllByRole("cell").map((cell) => cell.textContent)).toEqual([
      "mail", "paused", "", "12", "3", "40", "0", "0", "4", "1.5/s",
    ]);
    expect(screen.getAllByText("10,000+").length).toBeGreaterThanOrEqual(2);
    expect(screen.getByRole("link", { name: /TimeoutError no answer within # s/ })).toHaveAttribute(
      "href",
      "/tasks?q=state%3Afailed%20error%3Abuiltins.TimeoutError",
    );
    expect(screen.getByRole("link", { name: "tasks.send" })).toHaveAttribute("href", "/tasks?q=name%3Atasks.send");
  });

  it("has a table behind every chart", async () => {
    overview();
    const buttons = await screen.findAllByRole("button", { name: /^Table of / });
    expect(buttons.map((each) => each.textContent)).toEqual([
      "Table of Finished tasks",
      "Table of Waiting and running",
      "Table of Time in the queue",
      "Table of Time of execution",
    ]);
    await userEvent.click(screen.getByRole("button", { name: "Table of Waiting and running" }));
    const load = within(screen.getByRole("table", { name: "Waiting and running" })).getAllByRole("row").slice(1);
    expect(load.map((row) => within(row).getAllByRole("cell").map((cell) => cell.textContent))).toEqual([
      ["0", "0"],
      ["32", "5"],
    ]);
    await userEvent.click(screen.getByRole("button", { name: "Table of Finished tasks" }));
    const rows = within(screen.getByRole("table", { name: "Finished tasks" })).getAllByRole("row");
    expect(rows.slice(1).map((row) => within(row).getAllByRole("cell").map((cell) => cell.textContent))).toEqual([
      ["1/s", "0/s"],
      ["2/s", "0.1/s"],
    ]);
  });

  it("keeps the range in the address", async () => {
    const { server, router } = overview();
    await userEvent.selectOptions(await screen.findByLabelText("Time range"), "24h");
    expect(router.state.location.search).toBe("?range=24h");
    await vi.waitFor(() => expect(server.requests.at(-1)?.query).toBe("range=24h"));
  });

  const quiet: wire.OverviewShown = {
    ...shown,
    queues: [],
    states: {},
    finished: { ...shown.finished, totals: outcomes(0, 0), queues: [], names: [] },
    workers: { alive: 0, silent: 0, stopping: 0, hosts: 0 },
  };

  it("says what to do while nothing was ever enqueued", async () => {
    overview(quiet, undefined, { "GET /api/v1/tasks": { items: [], next: null } });
    expect(await screen.findByText("Nothing was enqueued yet")).toBeVisible();
    expect(screen.getByText(/No worker runs/)).toBeVisible();
  });

  it("does not take a quiet hour for a new ledger", async () => {
    overview(quiet, undefined, { "GET /api/v1/tasks": { items: [{ id: 1 }], next: null } });
    expect(await screen.findByRole("region", { name: "At a glance" })).toHaveTextContent("every queue is empty");
    expect(screen.getByText("Every queue is empty")).toBeVisible();
  });

  it("says what went wrong, and tries again", async () => {
    let up = false;
    overview(() => (up ? shown : problem(503, "Service Unavailable", "the database cannot be reached now; try again")));
    expect(await screen.findByRole("alert")).toHaveTextContent("the database cannot be reached now");
    up = true;
    await userEvent.click(screen.getByRole("button", { name: "Try again" }));
    expect(await screen.findByRole("region", { name: "At a glance" })).toBeVisible();
  });

  it("moves with what the server says by itself", async () => {
    let socket: { onmessage?: (event: { data: string }) => void } = {};
    let frame: () => void = () => undefined;
    const live = new LiveHub(
      { open: () => (socket = { close: () => undefined } as object) as WebSocket, after: () => 0, forget: () => undefined, now: Date.now, random: () => 0 },
      { request: (act) => ((frame = act), () => undefined) },
    );
    overview(shown, live);
    await screen.findByRole("region", { name: "At a glance" });
    const message = (second: number, completed: number): OverviewMessage => ({
      type: "overview",
      at: `2026-05-01T08:00:0${second}Z`,
      minutes: [{ at: "2026-05-01T08:00:00Z", ...outcomes(completed, 0) }],
      states: { running: 5 },
      queues: [{ name: "mail", paused: false, depths: { primary: 77 }, retry_ratio: 0.3 }],
      workers: { alive: 3, silent: 0, stopping: 0, hosts: 2 },
    });
    act(() => {
      socket.onmessage?.({ data: JSON.stringify(message(1, 0)) });
      socket.onmessage?.({ data: JSON.stringify(message(3, 14)) });
      frame();
    });
    const glance = screen.getByRole("region", { name: "At a glance" });
    expect(within(glance).getByText("7/s")).toBeVisible();
    expect(within(glance).getByText("77")).toBeVisible();
    expect(within(glance).getByText("on 2 hosts")).toBeVisible();
    expect(within(screen.getByRole("table", { name: "Queues and lanes" })).getAllByRole("row")).toHaveLength(2);
  });
});

it("calls errors by their last name, and finds them by the whole", () => {
  expect([shortClass("builtins.TimeoutError"), shortClass("Odd"), shortClass(null)]).toEqual(["TimeoutError", "Odd", "No error class"]);
  expect(searchFor({ error_class: null })).toBe("state:failed");
});

it("takes a state that the last message does not name for empty", () => {
  const counted = { failed: { n: 3, more: false } };
  expect(textOf("failed", counted, undefined)).toBe("3");
  expect(textOf("failed", counted, {})).toBe("0");
  expect(textOf("failed", counted, { failed: 10_001 })).toBe("10,000+");
});

it("says first what is wrong with workers", () => {
  const workers = { alive: 3, silent: 0, stopping: 0, hosts: 1 };
  expect([workers, { ...workers, stopping: 1 }, { ...workers, silent: 2, stopping: 1 }].map(workersText)).toEqual(["on one host", "1 stopping", "2 silent"]);
  expect(backlogOf({ depths: { primary: 2, retry: 3, scheduled: 9 } })).toBe(5);
});
