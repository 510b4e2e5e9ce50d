import { screen } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { expect, it } from "vitest";

import type { wire } from "@/api";
import { operator, problem, renderPage, viewer } from "@/testing/page";

import { Component as BreakerPage } from "./BreakerPage";
import { Component as BreakersPage } from "./BreakersPage";

const mail: wire.BreakerShown = {
  service: "mail",
  status: "open",
  revision: 3,
  forced: false,
  calls: 12,
  failures: 9,
  changed_by: "vm:7",
  changed_at: "2026-05-01T08:00:00Z",
  until: "2026-05-01T08:01:00Z",
};
const sms: wire.BreakerShown = { ...mail, service: "sms", status: "closed", calls: 0, failures: 0, until: null };

it("resets what is open, and opens what is closed for a time", async () => {
  const answers = {
    "GET /api/v1/breakers": [sms, mail],
    "POST /api/v1/breakers/mail/reset": { ...mail, status: "closed" },
    "POST /api/v1/breakers/sms/open": { ...sms, status: "open" },
  };
  const { server } = renderPage(<BreakersPage />, { path: "/breakers", session: operator, answers });
  expect(await screen.findByText("9 of 12 failed")).toBeVisible();
  await userEvent.click(screen.getByRole("button", { name: "Reset the breaker of mail" }));
  expect(await screen.findByText("The breaker of mail is closed")).toBeVisible();
  await userEvent.click(screen.getByRole("button", { name: "Open the breaker of sms" }));
  await userEvent.selectOptions(screen.getByLabelText("How long"), "for an hour");
  await userEvent.click(screen.getByRole("button", { name: "Open it", hidden: true }));
  expect(await screen.findByText("The breaker of sms is open")).toBeVisible();
  expect(server.requests).toContainEqual({ method: "POST", path: "/api/v1/breakers/sms/open", query: "", body: { timeout: 3600 } });
});

it("opens one by its name until it is reset", async () => {
  const answers = { "GET /api/v1/breakers": [], "POST /api/v1/breakers/geo/open": { ...mail, service: "geo", forced: true } };
  const { server } = renderPage(<BreakersPage />, { path: "/breakers", session: operator, answers });
  await userEvent.click(await screen.findByRole("button", { name: "Open one by hand…" }));
  expect(screen.getByRole("button", { name: "Open it", hidden: true })).toBeDisabled();
  await userEvent.type(screen.getByLabelText("Service"), "geo");
  await userEvent.selectOptions(screen.getByLabelText("How long"), "until somebody resets it");
  await userEvent.click(screen.getByRole("button", { name: "Open it", hidden: true }));
  expect(await screen.findByText("It stays open until it is reset.")).toBeVisible();
  expect(server.requests).toContainEqual({ method: "POST", path: "/api/v1/breakers/geo/open", query: "", body: { timeout: null } });
});

it("shows its past, and what is not kept of it", async () => {
  const items = [
    { at: "2026-05-01T08:01:00Z", act: "half_open", by: null, source: "ledger", outcome: "done", forced: false, calls: null, failures: null },
    { at: "2026-05-01T08:00:00Z", act: "opened", by: "vm:7", source: "ledger", outcome: "done", forced: false, calls: 12, failures: 7 },
    { at: "2026-04-01T08:00:00Z", act: "reset", by: "olu", source: "audit", outcome: "done", forced: false, calls: null, failures: null },
  ];
  const answers = { "GET /api/v1/breakers": [mail], "GET /api/v1/breakers/mail/history": { items, complete: false } };
  renderPage(<BreakerPage />, { path: "/breakers/:service", at: "/breakers/mail", session: operator, answers });
  expect(await screen.findByText("closed by hand")).toBeVisible();
  expect(screen.getByRole("row", { name: /half open: its time was over, one call may probe the clock/ })).toBeVisible();
  expect(screen.getByText("opened: 7 of 12 calls failed")).toBeVisible();
  expect(screen.getByText(/there was more before/)).toBeVisible();
  expect(screen.getByText("olu")).toBeVisible();
});

it("tells readers what happened, and not who did it", async () => {
  const unnamed = { ...mail, changed_by: null };
  const items = [{ at: "2026-05-01T08:00:00Z", act: "opened", by: null, source: "ledger", outcome: "done", forced: false, calls: 12, failures: 7 }];
  const answers = { "GET /api/v1/breakers": [unnamed], "GET /api/v1/breakers/mail/history": { items, complete: true } };
  const one = renderPage(<BreakerPage />, { path: "/breakers/:service", at: "/breakers/mail", session: viewer, answers });
  expect(await screen.findByText("opened: 7 of 12 calls failed")).toBeVisible();
  expect(screen.queryByText("the clock")).toBeNull();
  expect(screen.queryByText("By")).toBeNull();
  expect(screen.queryByRole("button", { name: "Reset" })).toBeNull();
  one.unmount();
  renderPage(<BreakersPage />, { path: "/breakers", session: viewer, answers });
  expect(await screen.findByText("9 of 12 failed")).toBeVisible();
  expect(screen.queryByText("By")).toBeNull();
});

it("says why it was not reset", async () => {
  const answers = { "GET /api/v1/breakers": [mail], "POST /api/v1/breakers/mail/reset": problem(404, "Not Found", "no breaker 'mail'") };
  renderPage(<BreakersPage />, { path: "/breakers", session: operator, answers });
  await userEvent.click(await screen.findByRole("button", { name: "Reset the breaker of mail" }));
  expect(await screen.findByText("no breaker 'mail'")).toBeVisible();
});
