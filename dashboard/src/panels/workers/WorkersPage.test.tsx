import { screen, within } from "@testing-library/react";
import { expect, it } from "vitest";

import type { wire } from "@/api";
import { renderPage, viewer } from "@/testing/page";

import { Component as WorkerPage } from "./WorkerPage";
import { Component as WorkersPage } from "./WorkersPage";

const worker: wire.WorkerShown = {
  id: "vm:7:1",
  kind: "pool",
  hostname: "vm",
  pid: 7,
  state: "active",
  lease: 30,
  queues: [],
  version: "0.1.0",
  started_at: "2026-05-01T08:00:00Z",
  last_heartbeat: "2026-05-01T08:00:00Z",
  stopped_at: null,
  tasks_completed: 1200,
  tasks_failed: 3,
  alive: true,
  heartbeat_age: 2,
  holds: { n: 2, more: false },
};
const task = {
  id: 17,
  name: "tasks.report",
  label: null,
  state: "running",
  reason: null,
  queue: "reports",
  worker: "vm:7:1",
  owner: null,
  attempt: 0,
  max_attempts: 4,
  started_at: "2026-05-01T08:00:00Z",
  progress: { value: 3, total: 10, message: "reading" },
};

it("shows what each runs, and the dead apart", async () => {
  const answers = {
    "GET /api/v1/workers": [
      worker,
      { ...worker, id: "vm:8:1", pid: 8, alive: false, heartbeat_age: 90 },
      { ...worker, id: "vm:9:1", pid: 9, alive: false, state: "stopped", stopped_at: "2026-05-01T09:00:00Z" },
    ],
    "GET /api/v1/tasks": { items: [task, { ...task, id: 18 }], next: null },
  };
  renderPage(<WorkersPage />, { path: "/workers", session: viewer, answers });
  const working = await screen.findByRole("table", { name: "Workers that are heard of" });
  expect(within(working).getAllByRole("row")).toHaveLength(2);
  expect(await within(working).findByRole("link", { name: "tasks.report" })).toHaveAttribute("href", "/tasks/17");
  expect(within(working).getByText("and 1 more")).toBeVisible();
  expect(within(screen.getByRole("table", { name: "Workers that are silent" })).getByRole("link")).toHaveAttribute("href", "/workers/vm%3A8%3A1");
  expect(within(screen.getByRole("table", { name: "Workers that stopped" })).getByText("vm · 9")).toBeVisible();
});

it("says how to start one where there is none", async () => {
  renderPage(<WorkersPage />, { path: "/workers", session: viewer, answers: { "GET /api/v1/workers": [], "GET /api/v1/tasks": { items: [], next: null } } });
  expect(await screen.findByText("No worker is there")).toBeVisible();
});

it("shows one with what it holds", async () => {
  const answers = { "GET /api/v1/workers/vm:7:1": { ...worker, queues: ["mail"], alive: false, heartbeat_age: 40, holding: [task] } };
  renderPage(<WorkerPage />, { path: "/workers/:id", at: "/workers/vm%3A7%3A1", session: viewer, answers });
  expect(await screen.findByRole("link", { name: "17 tasks.report" })).toHaveAttribute("href", "/tasks/17");
  expect(screen.getByRole("progressbar", { name: "Progress of task 17" })).toHaveAttribute("aria-valuenow", "3");
  expect(screen.getByRole("alert")).toHaveTextContent("other workers take over what it held");
  expect(screen.getByRole("link", { name: "mail" })).toHaveAttribute("href", "/queues/mail");
});
