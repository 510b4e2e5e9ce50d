import { screen, waitFor, within } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { expect, it } from "vitest";

import type { wire } from "@/api";
import { operator, problem, renderPage, user, type Asked } from "@/testing/page";

import { Component as DeadLettersPage } from "./DeadLettersPage";
import { Component as GroupPage } from "./GroupPage";

const KEY = "5f2c9a7be01d44c3a0b1";
const timeout: wire.FailureShown = {
  key: KEY,
  error_class: "builtins.TimeoutError",
  message: "no answer within # s",
  count: { n: 2, more: false },
  names: ["tasks.send"],
  queues: ["mail"],
  newest_at: "2026-05-01T08:00:00Z",
  oldest_at: "2026-05-01T07:00:00Z",
  example: 17,
};
const COUNTED_AT = "2026-05-01T08:00:05.123456Z";
const searched = { tasks: 2, complete: true, back_to: null };
const letter = {
  id: 17,
  name: "tasks.send",
  label: null,
  queue: "mail",
  state: "failed",
  reason: null,
  owner: "uma",
  attempt: 3,
  max_attempts: 3,
  finished_at: "2026-05-01T08:00:00Z",
  error: { error_class: "builtins.TimeoutError", message: "no answer within 5 s" },
};

const answers = {
  "GET /api/v1/dead-letters/groups": { items: [timeout], searched },
  "GET /api/v1/dead-letters": { items: [letter, { ...letter, id: 18, owner: null }], next: null, searched },
  "GET /api/v1/tasks/17": { ...letter, arguments: { address: "ada" }, attempts: [] },
  "GET /api/v1/tasks": ({ query }: Asked) => ({
    items: new URLSearchParams(query).getAll("id").map((id) => ({ ...letter, id: Number(id), state: "completed" })),
    next: null,
    searched,
  }),
  "POST /api/v1/dead-letters/replay": ({ body }: Asked) =>
    (body as wire.DeadLetterFilter).dry_run
      ? { dry_run: true, count: { n: 2, more: false }, answers: {}, until: COUNTED_AT }
      : { dry_run: false, count: { n: 2, more: false }, answers: { retried: 2 }, until: null },
};

it("replays a group after a count, and shows what became of it", async () => {
  const { server } = renderPage(<DeadLettersPage />, { path: "/dead-letters", session: operator, answers });
  await userEvent.click(await screen.findByRole("button", { name: /^Replay TimeoutError/ }));
  const go = await screen.findByRole("button", { name: "Replay 2 dead letters", hidden: true });
  const sent = () => server.requests.filter((asked) => asked.path === "/api/v1/dead-letters/replay").map((asked) => asked.body);
  expect(sent()).toEqual([{ group: KEY, all: false, dry_run: true }]);
  const first = server.requests.findIndex((asked) => asked.query.includes("limit=100"));
  await userEvent.click(go);
  const replayed = await screen.findByRole("region", { name: "Replayed from here" });
  // As of the count: neither what is acted on nor what is looked after is what has failed since.
  expect(sent().at(-1)).toEqual({ group: KEY, all: false, until: COUNTED_AT, dry_run: false });
  expect(first).toBeGreaterThan(-1);
  expect(await within(replayed).findByText("2 completed")).toBeVisible();
  expect(within(replayed).getByRole("link", { name: "18 tasks.send", hidden: true })).toHaveAttribute("href", "/tasks/18");
});

it("acts on nothing when the answer is no", async () => {
  const { server } = renderPage(<DeadLettersPage />, { path: "/dead-letters", session: operator, answers });
  await userEvent.click(await screen.findByRole("button", { name: "Replay all" }));
  await userEvent.click(await screen.findByRole("button", { name: "Keep as it is", hidden: true }));
  const sent = server.requests.filter((asked) => asked.path === "/api/v1/dead-letters/replay").map((asked) => asked.body);
  expect(sent).toEqual([{ all: true, dry_run: true }]);
});

it("narrows by the address, and acts on what is narrowed", async () => {
  const { server, router } = renderPage(<DeadLettersPage />, { path: "/dead-letters", at: "/dead-letters?queue=mail", session: operator, answers });
  await screen.findByText("no answer within # s");
  expect(server.requests.find((asked) => asked.path.endsWith("/groups"))?.query).toBe("queue=mail");
  expect(screen.getByRole("button", { name: "Replay all of these" })).toBeVisible();
  await userEvent.type(screen.getByLabelText("Owner"), "ada{Enter}");
  await waitFor(() => expect(router.state.location.search).toBe("?queue=mail&owner=ada"));
});

it("discards those that are chosen, by their ids", async () => {
  const discard = {
    "POST /api/v1/tasks/delete": ({ body }: Asked) => ({
      dry_run: (body as wire.Criteria).dry_run,
      count: { n: 2, more: false },
      answers: (body as wire.Criteria).dry_run ? {} : { deleted: 2 },
      until: (body as wire.Criteria).dry_run ? COUNTED_AT : null,
    }),
  };
  const { server } = renderPage(<GroupPage />, {
    path: "/dead-letters/:group",
    at: `/dead-letters/${KEY}`,
    session: operator,
    answers: { ...answers, ...discard },
  });
  await userEvent.click(await screen.findByLabelText("Select task 17"));
  await userEvent.click(screen.getByLabelText("Select task 18"));
  await userEvent.click(screen.getByRole("button", { name: "Discard" }));
  await userEvent.click(await screen.findByRole("button", { name: "Discard 2 dead letters", hidden: true }));
  expect(await screen.findByText("2 are removed.")).toBeVisible();
  const last = server.requests.findLast((asked) => asked.path === "/api/v1/tasks/delete");
  expect(last?.body).toEqual({ id: [17, 18], dead_letter: true, status: ["failed"], all: false, until: COUNTED_AT, dry_run: false });
});

it("lets users act on their own alone", async () => {
  const replay = { "POST /api/v1/dead-letters/17/replay": { ids: [17] } };
  const { server } = renderPage(<GroupPage />, {
    path: "/dead-letters/:group",
    at: `/dead-letters/${KEY}`,
    session: user,
    answers: { ...answers, ...replay },
  });
  await userEvent.click(await screen.findByRole("button", { name: "Replay task 17" }));
  expect(await screen.findByText("Replayed: task 17")).toBeVisible();
  expect(screen.queryByRole("button", { name: "Replay task 18" })).toBeNull();
  expect(screen.queryByLabelText("Select task 17")).toBeNull();
  expect(screen.queryByRole("button", { name: "Replay all of it" })).toBeNull();
  expect(server.requests).toContainEqual({ method: "POST", path: "/api/v1/dead-letters/17/replay", query: "", body: null });
});

it("says why nothing was replayed", async () => {
  const refused = { "POST /api/v1/dead-letters/replay": problem(503, "Away", "the database cannot be reached now") };
  renderPage(<DeadLettersPage />, { path: "/dead-letters", session: operator, answers: { ...answers, ...refused } });
  await userEvent.click(await screen.findByRole("button", { name: "Replay all" }));
  expect(await screen.findByText("Not replayed: every dead letter")).toBeVisible();
});
