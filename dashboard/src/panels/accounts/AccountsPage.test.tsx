import { screen, within } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { expect, it } from "vitest";

import type { wire } from "@/api";
import { admin, problem, renderPage, user, type Asked } from "@/testing/page";

import { Component as AccountsPage } from "./AccountsPage";
import { Component as UserPage } from "./UserPage";

const token: wire.TokenAnswer = {
  id: 7,
  user: "uma",
  kind: "api",
  label: "deploy script",
  hint: "hr_3fQ9x",
  scopes: ["read", "submit"],
  created_at: "2026-05-01T08:00:00Z",
  expires_at: null,
  last_used_at: null,
  revoked_at: null,
};
const uma: wire.UserAnswer = {
  name: "uma",
  role: "user",
  disabled: false,
  has_password: true,
  locked_until: null,
  created_at: "2026-05-01T08:00:00Z",
  changed_at: "2026-05-01T08:00:00Z",
};

const tokensOf =
  (items: readonly wire.TokenAnswer[]) =>
  ({ query }: Asked) => ({ items: items.filter((each) => each.kind === new URLSearchParams(query).get("kind")) });

it("makes a token, good for what was chosen, and shows its secret once", async () => {
  const answers = {
    "GET /api/v1/tokens": tokensOf([token]),
    "POST /api/v1/tokens": { ...token, id: 8, secret: "hr_secret" },
  };
  const { server } = renderPage(<AccountsPage />, { path: "/accounts", session: user, answers });
  expect(await screen.findByText("deploy script")).toBeVisible();
  expect(screen.queryByRole("tab", { name: "Users" })).toBeNull();
  await userEvent.click(screen.getByRole("button", { name: "New token" }));
  await userEvent.type(screen.getByLabelText("Label"), "notebook");
  await userEvent.click(screen.getByLabelText(/^control/));
  expect(screen.queryByLabelText(/^admin/)).toBeNull();
  await userEvent.click(screen.getByRole("button", { name: "Make the token", hidden: true }));
  expect(await screen.findByText("hr_secret")).toBeInTheDocument();
  expect(server.requests).toContainEqual({
    method: "POST",
    path: "/api/v1/tokens",
    query: "",
    body: { label: "notebook", scopes: ["read", "submit"], ttl: 7_776_000 },
  });
  await userEvent.click(screen.getByRole("button", { name: "I have copied it", hidden: true }));
  expect(screen.queryByText("hr_secret")).toBeNull();
});

it("hides tokens that ended until they are asked for, and revokes after a question", async () => {
  const old = { ...token, id: 6, label: "old script", revoked_at: "2026-05-01T09:00:00Z" };
  const answers = { "GET /api/v1/tokens": tokensOf([token, old]), "DELETE /api/v1/tokens/7": new Response(null, { status: 204 }) };
  const { server } = renderPage(<AccountsPage />, { path: "/accounts", session: user, answers });
  expect(await screen.findByText("deploy script")).toBeVisible();
  expect(screen.queryByText("old script")).toBeNull();
  await userEvent.click(screen.getByLabelText("Show 1 that ended"));
  expect(screen.getByText("old script")).toBeVisible();
  await userEvent.click(screen.getByRole("button", { name: "Revoke deploy script" }));
  expect(server.requests.some((asked) => asked.method === "DELETE")).toBe(false);
  await userEvent.click(screen.getByRole("button", { name: "Revoke the token", hidden: true }));
  expect(await screen.findByText("The token deploy script is revoked")).toBeVisible();
});

it("says beside the field why a user was not let in", async () => {
  const errors = [{ where: "body", pointer: "/password", detail: "a password has 8 to 1000 characters" }];
  const refusal = new Response(JSON.stringify({ title: "Unprocessable Content", status: 422, errors }), {
    status: 422,
    headers: { "Content-Type": "application/problem+json" },
  });
  const answers = { "GET /api/v1/users": { items: [uma] }, "POST /api/v1/users": refusal };
  renderPage(<AccountsPage />, { path: "/accounts", session: admin, answers });
  expect(await screen.findByRole("link", { name: "uma" })).toHaveAttribute("href", "/accounts/uma");
  await userEvent.click(screen.getByRole("button", { name: "New user" }));
  await userEvent.type(screen.getByLabelText("Name"), "bob");
  await userEvent.type(screen.getByLabelText("Password"), "short");
  await userEvent.click(screen.getByRole("button", { name: "Let them in", hidden: true }));
  expect(await screen.findByText("a password has 8 to 1000 characters")).toBeInTheDocument();
});

it("gives another role, and says why not", async () => {
  const answers = {
    "GET /api/v1/users/uma": uma,
    "GET /api/v1/tokens": { items: [] },
    "PATCH /api/v1/users/uma": ({ body }: Asked) =>
      (body as wire.ChangeUser).role === "admin" ? { ...uma, role: "admin" } : problem(409, "Conflict", "the last admin stays one"),
  };
  const { server } = renderPage(<UserPage />, { path: "/accounts/:name", at: "/accounts/uma", session: admin, answers });
  const role = await screen.findByLabelText("Role of uma");
  await userEvent.selectOptions(role, "admin");
  await userEvent.click(screen.getByRole("button", { name: "Give the role" }));
  expect(await screen.findByText("uma is admin")).toBeVisible();
  expect(server.requests).toContainEqual({ method: "PATCH", path: "/api/v1/users/uma", query: "", body: { role: "admin" } });
  await userEvent.selectOptions(role, "viewer");
  await userEvent.click(screen.getByRole("button", { name: "Give the role" }));
  expect(await within(screen.getByRole("region", { name: "Role" })).findByText("the last admin stays one")).toBeVisible();
});

it("shuts a user out after a question", async () => {
  const answers = {
    "GET /api/v1/users/uma": uma,
    "GET /api/v1/tokens": { items: [] },
    "PATCH /api/v1/users/uma": { ...uma, disabled: true },
  };
  const { server } = renderPage(<UserPage />, { path: "/accounts/:name", at: "/accounts/uma", session: admin, answers });
  await userEvent.click(await screen.findByRole("button", { name: "Disable uma" }));
  await userEvent.click(screen.getAllByRole("button", { name: "Disable uma", hidden: true }).at(-1) as HTMLElement);
  expect(await screen.findByText("uma is shut out")).toBeVisible();
  expect(server.requests).toContainEqual({ method: "PATCH", path: "/api/v1/users/uma", query: "", body: { disabled: true } });
});
