import { screen, waitFor, within } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { expect, it } from "vitest";

import type { wire } from "@/api";
import { operator, problem, renderPage, viewer, type Asked } from "@/testing/page";

import { Component as QueuePage } from "./QueuePage";
import { Component as QueuesPage } from "./QueuesPage";

const mail: wire.QueueShown = {
  name: "mail",
  paused: false,
  depths: { primary: 12, retry: 3, scheduled: 0, waiting: 0, claimed: 1, running: 4 },
  retry_ratio: 0.3,
  limit: null,
  rate: null,
};

it("lists queues with their depths and pauses one", async () => {
  const answers = { "GET /api/v1/queues": [mail], "POST /api/v1/queues/mail/pause": { ...mail, paused: true } };
  const { server } = renderPage(<QueuesPage />, { path: "/queues", session: operator, answers });
  expect(await screen.findByRole("link", { name: "mail" })).toHaveAttribute("href", "/queues/mail");
  await userEvent.click(screen.getByRole("button", { name: "Pause mail" }));
  expect(await screen.findByText("mail is paused")).toBeVisible();
  expect(server.requests).toContainEqual({ method: "POST", path: "/api/v1/queues/mail/pause", query: "", body: null });
});

it("shows why a queue was not paused", async () => {
  const answers = { "GET /api/v1/queues": [mail], "POST /api/v1/queues/mail/pause": problem(503, "Away", "the database is away") };
  renderPage(<QueuesPage />, { path: "/queues", session: operator, answers });
  await userEvent.click(await screen.findByRole("button", { name: "Pause mail" }));
  expect(await screen.findByText("mail was not paused")).toBeVisible();
  expect(screen.getByText("the database is away")).toBeVisible();
});

it("offers no acts to who may not act", async () => {
  renderPage(<QueuesPage />, { path: "/queues", session: viewer, answers: { "GET /api/v1/queues": [mail] } });
  await screen.findByRole("link", { name: "mail" });
  expect(screen.queryByRole("button", { name: "Pause mail" })).toBeNull();
});

it("sets a limit and lifts it", async () => {
  let now = mail;
  const answers = {
    "GET /api/v1/queues": () => [now],
    "PUT /api/v1/queues/mail/limit": ({ body }: Asked) => (now = { ...now, limit: (body as { n: number | null }).n }),
  };
  const { server } = renderPage(<QueuePage />, { path: "/queues/:name", at: "/queues/mail", session: operator, answers });
  const field = await screen.findByLabelText("Tasks at once");
  const save = screen.getByRole("button", { name: "Save the limit" });
  expect(save).toBeDisabled();
  await userEvent.type(field, "5");
  await userEvent.click(save);
  expect(await screen.findByText("mail runs at most 5 at once")).toBeVisible();
  await userEvent.clear(field);
  await userEvent.click(save);
  expect(await screen.findByText("mail has no limit")).toBeVisible();
  const sent = server.requests.filter((asked) => asked.method === "PUT").map((asked) => asked.body);
  expect(sent).toEqual([{ n: 5 }, { n: null }]);
});

it("says beside the field what the server refused", async () => {
  const errors = [{ where: "body", pointer: "/n", detail: "Input should be less than 2147483648" }];
  const refusal = new Response(JSON.stringify({ title: "Unprocessable Content", status: 422, errors }), {
    status: 422,
    headers: { "Content-Type": "application/problem+json" },
  });
  const answers = { "GET /api/v1/queues": [mail], "PUT /api/v1/queues/mail/limit": refusal };
  renderPage(<QueuePage />, { path: "/queues/:name", at: "/queues/mail", session: operator, answers });
  const field = await screen.findByLabelText("Tasks at once");
  await userEvent.type(field, "3000000000{Enter}");
  await waitFor(() => expect(field).toHaveAccessibleDescription("Input should be less than 2147483648"));
});

it("sets a rate", async () => {
  const answers = { "GET /api/v1/queues": [mail], "PUT /api/v1/queues/mail/rate": { ...mail, rate: { n: 9, per: 60, burst: 3 } } };
  const { server } = renderPage(<QueuePage />, { path: "/queues/:name", at: "/queues/mail", session: operator, answers });
  await userEvent.type(await screen.findByLabelText("Starts"), "9");
  await userEvent.selectOptions(screen.getByLabelText("In a"), "minute");
  await userEvent.type(screen.getByLabelText("Most at once"), "3");
  await userEvent.click(screen.getByRole("button", { name: "Save the rate" }));
  expect(await screen.findByText("The rate of mail is set")).toBeVisible();
  expect(server.requests).toContainEqual({
    method: "PUT",
    path: "/api/v1/queues/mail/rate",
    query: "",
    body: { n: 9, per: 60, burst: 3 },
  });
});

function ratesOf({ query }: Asked): wire.QueueRates {
  const range = (new URLSearchParams(query).get("range") ?? "1h") as wire.QueueRates["range"];
  const completed = { "5m": 30, "1h": 300, "24h": 3000, "7d": 3000 }[range];
  const counts = { completed, failed: 10, cancelled: 0, rejected: 0 };
  return {
    queue: "mail",
    range,
    since: "2026-05-01T08:00:00Z",
    until: "2026-05-01T08:01:00Z",
    bucket: 60,
    whose: "all",
    complete: range !== "7d",
    series: [{ at: "2026-05-01T08:00:00Z", ...counts }],
    totals: counts,
    per_second: 0.5,
    depths: [0, 1].map((minute) => ({ at: `2026-05-01T08:0${minute}:00Z`, depths: { primary: completed, retry: 2, running: 1 } })),
  };
}

it("shows what ended over times from minutes to a week, from its first look on", async () => {
  const answers = { "GET /api/v1/queues": [mail], "GET /api/v1/queues/mail/rates": ratesOf };
  const { router } = renderPage(<QueuePage />, { path: "/queues/:name", at: "/queues/mail", session: viewer, answers });
  const table = await screen.findByRole("table", { name: "What ended of mail" });
  await waitFor(() => expect(within(table).getByRole("row", { name: "5 minutes 30 10 (25 %) 0.5/s" })).toBeVisible());
  expect(within(table).getByRole("row", { name: /^hour 300 10/ })).toBeVisible();
  // 300 in a minute.
  expect(await screen.findByRole("img", { name: /^Ended each second\. Completed: now 5\/s/ })).toBeVisible();
  const depths = (fresh: string) => [0, 1].map(() => [fresh, "2", "1"]);
  const noted = () => within(screen.getByRole("table", { name: "Waiting and running" })).getAllByRole("row").slice(-2);
  await userEvent.click(screen.getByRole("button", { name: "Table of Waiting and running" }));
  const cells = () => noted().map((row) => within(row).getAllByRole("cell").map((cell) => cell.textContent));
  await waitFor(() => expect(cells()).toEqual(depths("300")));
  await userEvent.selectOptions(screen.getByLabelText("Time range"), "Last 7 days");
  await waitFor(() => expect(cells()).toEqual(depths("3,000")));
  expect(await screen.findByRole("img", { name: /^Ended each second\. Completed: now 50\/s/ })).toBeVisible();
  expect(screen.getByText("Not all of this time has been counted yet.")).toBeVisible();
  expect(router.state.location.search).toBe("?range=7d");
});
