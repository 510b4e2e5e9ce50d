import { screen, waitFor } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { expect, it } from "vitest";

import { admin, operator, problem, renderPage } from "@/testing/page";

import { Component } from "./ApprovalsPage";

const refund = {
  id: 17,
  name: "tasks.refund",
  label: null,
  kind: "function",
  queue: "billing",
  state: "pending_approval",
  job: null,
  owner: "uma",
  enqueued_at: "2026-05-01T08:00:00Z",
};
const approval = { status: "pending", role: "operator", by: null, at: null, note: null };
const detail = { ...refund, arguments: { order: 12, card: "[redacted]" }, approval };

function answers(more: object) {
  let waits = true;
  return {
    "GET /api/v1/tasks": () => ({ items: waits ? [refund] : [], next: null }),
    "GET /api/v1/tasks/17": detail,
    "POST /api/v1/tasks/17/approve": () => {
      waits = false;
      return { ...detail, state: "pending" };
    },
    "POST /api/v1/tasks/17/reject": () => {
      waits = false;
      return { ...detail, state: "rejected" };
    },
    ...more,
  };
}

it("shows who asks for what, and approves it", async () => {
  const { server } = renderPage(<Component />, { path: "/approvals", session: operator, answers: answers({}) });
  expect(await screen.findByText("uma")).toBeVisible();
  expect(await screen.findByText('"[redacted]"')).toBeVisible();
  expect(server.requests.find((asked) => asked.path === "/api/v1/tasks")?.query).toBe("status=pending_approval&limit=20");
  await userEvent.click(screen.getByRole("button", { name: /^Approve tasks.refund/ }));
  expect(await screen.findByText("tasks.refund is approved")).toBeVisible();
  expect(await screen.findByText("Nothing waits for your word")).toBeVisible();
  expect(server.requests).toContainEqual({ method: "POST", path: "/api/v1/tasks/17/approve", query: "", body: { note: null } });
});

it("rejects with a reason, and not without", async () => {
  const { server } = renderPage(<Component />, { path: "/approvals", session: operator, answers: answers({}) });
  const reject = await screen.findByRole("button", { name: /^Reject tasks.refund/ });
  await userEvent.click(reject);
  expect(screen.getByLabelText("Reason")).toHaveAccessibleDescription("Say why, so that whoever asked can mend it");
  expect(server.requests.some((asked) => asked.method === "POST")).toBe(false);
  await userEvent.type(screen.getByLabelText("Reason"), "not broken ");
  await userEvent.click(reject);
  expect(await screen.findByText("tasks.refund is rejected")).toBeVisible();
  expect(server.requests).toContainEqual({ method: "POST", path: "/api/v1/tasks/17/reject", query: "", body: { note: "not broken" } });
});

it("says whose word it waits for, and leaves it to them", async () => {
  const asked = { "GET /api/v1/tasks/17": { ...detail, approval: { ...approval, role: "finance" } } };
  const { unmount } = renderPage(<Component />, { path: "/approvals", session: operator, answers: answers(asked) });
  expect(await screen.findByText("This is not yours to decide: it waits for finance, by an admin.")).toBeVisible();
  expect(screen.queryByRole("button", { name: /^Approve/ })).toBeNull();
  unmount();
  renderPage(<Component />, { path: "/approvals", session: admin, answers: answers(asked) });
  expect(await screen.findByText("finance, by an admin")).toBeVisible();
  expect(screen.getByRole("button", { name: /^Approve tasks.refund/ })).toBeVisible();
});

it("says why nothing was decided, and keeps what was written", async () => {
  const refused = { "POST /api/v1/tasks/17/approve": problem(403, "Forbidden", "task 17 is decided by who has the role 'admin'") };
  renderPage(<Component />, { path: "/approvals", session: operator, answers: answers(refused) });
  await userEvent.type(await screen.findByLabelText("Reason"), "fine");
  await userEvent.click(screen.getByRole("button", { name: /^Approve tasks.refund/ }));
  expect(await screen.findByText("task 17 is decided by who has the role 'admin'")).toBeVisible();
  await waitFor(() => expect(screen.getByLabelText("Reason")).toHaveValue("fine"));
});
