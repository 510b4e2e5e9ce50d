import { screen } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { expect, it } from "vitest";

import type { wire } from "@/api";
import { renderPage, type Asked } from "@/testing/page";

import { Component } from "./AuditPage";

const entry: wire.AuditShown = {
  id: 7,
  at: "2026-05-01T08:00:00Z",
  actor: "ada",
  act: "queues.pause",
  subject: "queue/mail",
  detail: {},
  request: "r7",
  outcome: "done",
};

it("reads page by page, and filters by whole words", async () => {
  const answers = {
    "GET /api/v1/audit": ({ query }: Asked) =>
      new URLSearchParams(query).has("cursor")
        ? { items: [{ ...entry, id: 6, actor: "olu" }], next: null }
        : { items: [entry], next: "c2" },
  };
  const { server, router } = renderPage(<Component />, { path: "/audit", answers });
  expect(await screen.findByRole("link", { name: "queue/mail" })).toHaveAttribute("href", "/queues/mail");
  await userEvent.click(screen.getByRole("button", { name: "Show more" }));
  expect(await screen.findByText("olu")).toBeVisible();
  expect(screen.getByText("ada")).toBeVisible();
  await userEvent.type(screen.getByLabelText("Who"), "ada");
  await userEvent.type(screen.getByLabelText("Did"), "queues.pause{Enter}");
  expect(router.state.location.search).toBe("?actor=ada&act=queues.pause");
  expect(server.requests.at(-1)?.query).toBe("actor=ada&act=queues.pause");
});

it("shows all of an entry", async () => {
  renderPage(<Component />, { path: "/audit", answers: { "GET /api/v1/audit": { items: [{ ...entry, outcome: "no such queue" }], next: null } } });
  await userEvent.click(await screen.findByRole("button", { name: "Show queues.pause by ada" }));
  expect(await screen.findByText("r7")).toBeInTheDocument();
  expect(screen.getAllByText("no such queue").length).toBeGreaterThan(0);
});

it("says so when nothing fits", async () => {
  renderPage(<Component />, { path: "/audit", at: "/audit?actor=nobody", answers: { "GET /api/v1/audit": { items: [], next: null } } });
  expect(await screen.findByText("Nothing was done that fits")).toBeVisible();
});
