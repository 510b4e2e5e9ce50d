import { configure, screen, within } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { expect, it, vi } from "vitest";

import { renderPage, user, viewer } from "@/testing/page";

import { Component } from "./JobsPage";
import { job } from "./testing";

configure({ asyncUtilTimeout: 10_000 });
vi.setConfig({ testTimeout: 30_000 });

const LIST = "GET /api/v1/jobs";

it("shows how far each job is", async () => {
  renderPage(<Component />, {
    path: "/jobs",
    answers: { [LIST]: { items: [job(), job({ id: 8, name: "weekly", state: "failed", reason: "timeout", failed: 3 })], next: null } },
  });
  const table = await screen.findByRole("table", { name: "Jobs" });
  expect(await within(table).findByRole("link", { name: "nightly #7" })).toHaveAttribute("href", "/jobs/7");
  const bar = within(table).getByRole("progressbar", { name: "Progress of nightly" });
  expect(bar).toHaveAttribute("aria-valuemax", "10");
  expect(bar).toHaveAttribute("aria-valuetext", "5 of 10");
  expect(within(table).getByText("4 completed, 1 failed, 2 running, 3 waiting")).toBeInTheDocument();
  expect(within(table).getByText(/timeout/)).toBeVisible();
});

it("keeps its filters in the address and asks the server with them", async () => {
  const { server, router } = renderPage(<Component />, {
    path: "/jobs",
    at: "/jobs?state=failed",
    answers: { [LIST]: { items: [], next: null } },
  });
  expect(await screen.findByText("No job is like that")).toBeVisible();
  expect(screen.getByRole("button", { name: "failed", pressed: true })).toBeVisible();
  await userEvent.click(screen.getByRole("button", { name: "running" }));
  await userEvent.type(screen.getByLabelText("Owner"), "ada{Enter}");
  expect(new URLSearchParams(router.state.location.search).getAll("state").sort()).toEqual(["failed", "running"]);
  expect(new URLSearchParams(router.state.location.search).get("owner")).toBe("ada");
  await expect.poll(() => server.requests.at(-1)?.query).toBe("limit=50&state=running&state=failed&owner=ada");
  await userEvent.click(screen.getByRole("button", { name: "Clear filters" }));
  expect(router.state.location.search).toBe("");
});

it("finds jobs by words of their names, and goes on where a look had not the time for all", async () => {
  const { server, router } = renderPage(<Component />, {
    path: "/jobs",
    answers: {
      [LIST]: ({ query }: { query: string }) =>
        query.includes("cursor=c1")
          ? { items: [job({ id: 1, name: "garden album" })], next: null, complete: true }
          : query.includes("text=")
            ? { items: [], next: "c1", complete: false }
            : { items: [job()], next: null, complete: true },
    },
  });
  expect(await screen.findByRole("link", { name: "nightly #7" })).toBeVisible();
  await userEvent.type(screen.getByLabelText("Name"), "album garden{Enter}");
  expect(await screen.findByText("None among the newest jobs")).toBeVisible();
  expect(router.state.location.search).toBe("?text=album+garden");
  expect(server.requests.at(-1)?.query).toBe("limit=50&text=album%20garden");
  await userEvent.click(screen.getByRole("button", { name: "Show more" }));
  expect(await screen.findByRole("link", { name: "garden album #1" })).toBeVisible();
});

it("reads the next page by the cursor that the server gave", async () => {
  const { server } = renderPage(<Component />, {
    path: "/jobs",
    answers: {
      [LIST]: ({ query }: { query: string }) =>
        query.includes("cursor=c1") ? { items: [job({ id: 1, name: "old" })], next: null } : { items: [job()], next: "c1" },
    },
  });
  await userEvent.click(await screen.findByRole("button", { name: "Show more" }));
  expect(await screen.findByRole("link", { name: "old #1" })).toBeVisible();
  expect(screen.getByRole("link", { name: "nightly #7" })).toBeVisible();
  expect(server.requests.some((asked) => asked.query.includes("cursor=c1"))).toBe(true);
});

it("says how to make the first one", async () => {
  renderPage(<Component />, { path: "/jobs", answers: { [LIST]: { items: [], next: null } } });
  expect(await screen.findByText("There are no jobs yet")).toBeVisible();
  expect(screen.getByText(/from headrace import chain/)).toBeVisible();
});

it("asks for an owner only those who see more than their own", async () => {
  const { unmount } = renderPage(<Component />, { path: "/jobs", session: viewer, answers: { [LIST]: { items: [], next: null } } });
  expect(await screen.findByLabelText("Owner")).toBeVisible();
  unmount();
  renderPage(<Component />, { path: "/jobs", session: user, answers: { [LIST]: { items: [], next: null } } });
  expect(await screen.findByText("There are no jobs yet")).toBeVisible();
  expect(screen.queryByLabelText("Owner")).toBeNull();
});
