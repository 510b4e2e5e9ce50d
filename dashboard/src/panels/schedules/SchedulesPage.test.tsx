import { screen, waitFor, within } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { expect, it } from "vitest";

import type { wire } from "@/api";
import { operator, problem, renderPage, viewer } from "@/testing/page";

import { Component as SchedulePage } from "./SchedulePage";
import { Component as SchedulesPage } from "./SchedulesPage";

const run: wire.RunShown = { tick: "2026-05-01T00:30:00Z", manual: false, task: 17, status: "failed", fired_at: "2026-05-01T00:30:00Z" };
const nightly: wire.ScheduleDetail = {
  name: "nightly",
  task: "tasks.report",
  when: "At 02:30 every day (Europe/Berlin)",
  cadence: { kind: "cron", expression: "30 2 * * *", tz: "Europe/Berlin" },
  catch_up: "coalesce",
  grace: 60,
  overlap: "skip",
  jitter: 0,
  paused: false,
  declared_by: "tasks:app",
  revision: 1,
  problem: null,
  next_at: "2030-05-02T00:30:00Z",
  upcoming: ["2030-05-02T00:30:00Z", "2030-05-03T00:30:00Z"],
  last_runs: [run],
  runs: [run],
  arguments: { region: "north" },
  queue: "reports",
  created_at: "2026-05-01T08:00:00Z",
  changed_at: "2026-05-01T08:00:00Z",
};
const registry = { items: [{ name: "tasks.report", queue: "reports", signature: "(region: str)", schema: {}, summary: null }], queues: [] };
const answers = {
  "GET /api/v1/schedules": [nightly],
  "GET /api/v1/schedules/nightly": nightly,
  "GET /api/v1/schedules/nightly/runs": { items: [run], next: null },
  "GET /api/v1/registry": registry,
};

it("says when in words and as cron, what comes next and how the last runs ended", async () => {
  renderPage(<SchedulesPage />, { path: "/schedules", session: viewer, answers });
  expect(await screen.findByText("At 02:30 every day")).toBeVisible();
  expect(screen.getByText("30 2 * * *")).toBeVisible();
  expect(screen.getByText("Europe/Berlin", { exact: false })).toBeVisible();
  expect(screen.getByRole("link", { name: /failed/ })).toHaveAttribute("href", "/tasks/17");
  expect(screen.queryByRole("button", { name: "New schedule" })).toBeNull();
  expect(screen.queryByRole("button", { name: "Pause nightly" })).toBeNull();
});

it("runs one now and pauses it", async () => {
  const acts = {
    "POST /api/v1/schedules/nightly/run": { task: 99 },
    "POST /api/v1/schedules/nightly/pause": problem(503, "Away", "the database cannot be reached now"),
  };
  renderPage(<SchedulesPage />, { path: "/schedules", session: operator, answers: { ...answers, ...acts } });
  await userEvent.click(await screen.findByRole("button", { name: "Run nightly now" }));
  expect(await screen.findByText("It is task 99. Its next fires stay as they are.")).toBeVisible();
  await userEvent.click(screen.getByRole("button", { name: "Pause nightly" }));
  expect(await screen.findByText("nightly was not paused")).toBeVisible();
});

it("makes one, and says beside the field what the server refused", async () => {
  const detail = "unknown time zone 'Berlin': did you mean Europe/Berlin?";
  const acts = { "POST /api/v1/schedules": problem(422, "Unprocessable Content", detail) };
  const { server, router } = renderPage(<SchedulesPage />, { path: "/schedules", at: "/schedules?new=yes", session: operator, answers: { ...answers, ...acts } });
  const dialog = within(await screen.findByRole("dialog", { hidden: true }));
  await userEvent.click(dialog.getByRole("button", { name: "Make the schedule", hidden: true }));
  expect(dialog.getByLabelText("Name")).toHaveAccessibleDescription("Give it a name");
  const given = dialog.getByLabelText("Arguments of each run");
  await userEvent.clear(given);
  await userEvent.click(given);
  await userEvent.paste('{"account": 9007199254740993}');
  await userEvent.click(dialog.getByRole("button", { name: "Make the schedule", hidden: true }));
  expect(given).toHaveAccessibleDescription(/^9007199254740993 is too large/);
  await userEvent.clear(given);
  expect(server.requests.some((asked) => asked.method === "POST")).toBe(false);
  await userEvent.type(dialog.getByLabelText("Name"), "east");
  await userEvent.type(dialog.getByLabelText("Task"), "tasks.report");
  const zone = dialog.getByLabelText("Time zone");
  await userEvent.clear(zone);
  await userEvent.type(zone, "Berlin");
  await userEvent.click(dialog.getByRole("button", { name: "Make the schedule", hidden: true }));
  await waitFor(() => expect(zone).toHaveAccessibleDescription(detail));
  expect(server.requests.find((asked) => asked.method === "POST")?.body).toMatchObject({ name: "east", cron: "0 9 * * 1-5", tz: "Berlin" });
  await userEvent.click(dialog.getByRole("button", { name: "Cancel", hidden: true }));
  expect(router.state.location.search).toBe("");
});

it("sends what was changed alone", async () => {
  const acts = { "PATCH /api/v1/schedules/nightly": { ...nightly, when: "At 03:00 every day (Europe/Berlin)" } };
  const { server } = renderPage(<SchedulePage />, {
    path: "/schedules/:name",
    at: "/schedules/nightly",
    session: operator,
    answers: { ...answers, ...acts },
  });
  await userEvent.click(await screen.findByRole("button", { name: "Edit" }));
  const dialog = within(await screen.findByRole("dialog", { hidden: true }));
  expect(dialog.getByText(/The code of tasks:app declares it/)).toBeInTheDocument();
  expect(dialog.getByRole("button", { name: "Save the changes", hidden: true })).toBeDisabled();
  const cron = dialog.getByLabelText("Cron");
  await userEvent.clear(cron);
  await userEvent.type(cron, "0 3 * * *");
  await userEvent.click(dialog.getByRole("button", { name: "Save the changes", hidden: true }));
  expect(await screen.findByText("nightly is changed")).toBeVisible();
  expect(server.requests.find((asked) => asked.method === "PATCH")?.body).toEqual({ cron: "0 3 * * *", tz: "Europe/Berlin" });
});

it("says which queue it will have with another task", async () => {
  const other = { name: "tasks.other", queue: "default", signature: "()", schema: {}, summary: null };
  const more = { ...answers, "GET /api/v1/registry": { ...registry, items: [...registry.items, other] } };
  for (const [queue, said] of [
    ["reports", "It goes to the queue of that task, default."],
    ["slow", "It stays in the queue slow, which was chosen for it."],
  ] as const) {
    const { unmount } = renderPage(<SchedulePage />, {
      path: "/schedules/:name",
      at: "/schedules/nightly?edit=yes",
      session: operator,
      answers: { ...more, "GET /api/v1/schedules/nightly": { ...nightly, queue } },
    });
    const dialog = within(await screen.findByRole("dialog", { hidden: true }));
    await waitFor(() => expect(dialog.getByText("(region: str)")).toBeInTheDocument());
    const task = dialog.getByLabelText("Task");
    await userEvent.clear(task);
    await userEvent.type(task, "tasks.other");
    expect(await dialog.findByText(said)).toBeInTheDocument();
    unmount();
  }
});

it.each([
  ["a secret", '"password": "[redacted]"', /anew/],
  ["a text with a secret in it", '"dsn": "postgresql://app:[redacted]@db/x"', /anew/],
  ["a number that was rounded", '"account": 9007199254740992', /too large/],
])("does not send %s back as it was shown, and changes the rest", async (_, shown, why) => {
  const secret = { ...nightly, arguments: JSON.parse(`{"region": "north", ${shown}}`) as object };
  const { server } = renderPage(<SchedulePage />, {
    path: "/schedules/:name",
    at: "/schedules/nightly?edit=yes",
    session: operator,
    answers: { ...answers, "GET /api/v1/schedules/nightly": secret, "PATCH /api/v1/schedules/nightly": secret },
  });
  const dialog = within(await screen.findByRole("dialog", { hidden: true }));
  const given = dialog.getByLabelText("Arguments of each run");
  await userEvent.clear(given);
  await userEvent.click(given);
  await userEvent.paste(`{"region": "south", ${shown}}`);
  await userEvent.click(dialog.getByRole("button", { name: "Save the changes", hidden: true }));
  expect(given).toHaveAccessibleDescription(why);
  expect(server.requests.some((asked) => asked.method === "PATCH")).toBe(false);
  await userEvent.clear(given);
  await userEvent.click(given);
  await userEvent.paste(JSON.stringify(secret.arguments));
  await userEvent.type(dialog.getByLabelText("Cron"), "{Backspace}5");
  await userEvent.click(dialog.getByRole("button", { name: "Save the changes", hidden: true }));
  expect(await screen.findByText("nightly is changed")).toBeVisible();
  expect(server.requests.find((asked) => asked.method === "PATCH")?.body).toEqual({ cron: "30 2 * * 5", tz: "Europe/Berlin" });
});

it("removes one after a question, and goes back to the list", async () => {
  const acts = { "DELETE /api/v1/schedules/nightly": new Response(null, { status: 204 }) };
  const { router } = renderPage(<SchedulePage />, {
    path: "/schedules/:name",
    at: "/schedules/nightly",
    session: operator,
    answers: { ...answers, ...acts },
  });
  await userEvent.click(await screen.findByRole("button", { name: "Remove" }));
  expect(screen.getByText(/makes it again when it is started next/)).toBeInTheDocument();
  await userEvent.click(screen.getByRole("button", { name: "Remove the schedule", hidden: true }));
  expect(await screen.findByText("nightly is removed")).toBeVisible();
  expect(router.state.location.pathname).toBe("/schedules");
});
