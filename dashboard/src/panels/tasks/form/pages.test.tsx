import { screen, waitFor, within } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { expect, it, vi } from "vitest";

import type { wire } from "@/api";
import { problem, renderPage, viewer, type Answers } from "@/testing/page";

import { Component as EditTaskPage } from "./EditTaskPage";
import { Component as NewTaskPage } from "./NewTaskPage";

const welcome: wire.Registered = {
  name: "tasks.welcome",
  aliases: ["hello"],
  queue: "default",
  doc: "Greet somebody.\n\nAnd more.",
  summary: "Greet somebody.",
  kind: "async",
  executor: "coroutine",
  priority: 0,
  options: {} as wire.Registered["options"],
  needs_approval: false,
  can_submit: true,
  signature: "(user_id: int, greeting: str = 'hello', password: str = '') -> str",
  schema: {
    type: "object",
    properties: {
      user_id: { type: "integer", minimum: 1 },
      greeting: { type: "string", default: "hello" },
      tags: { type: "array", items: { type: "string" }, default: [] },
      password: { type: "string" },
    },
    required: ["user_id"],
    additionalProperties: false,
  },
  complete: true,
  secrets: ["password"],
};
const registry: wire.Registry = { items: [welcome], commands: true, commands_need_approval: false, queues: ["default", "mail"] };
const made: wire.Submitted = { id: 17, name: "tasks.welcome", queue: "mail", state: "pending", created: true };

function openNew(at: string, answers: Answers = {}) {
  return renderPage(<NewTaskPage />, { path: "/tasks/new", at, answers: { "GET /api/v1/registry": registry, "POST /api/v1/tasks": made, ...answers } });
}

const sentTo = (requests: readonly { readonly method: string; readonly path: string; readonly body: unknown }[], path: string) =>
  requests.filter((asked) => asked.method === "POST" && asked.path === path).map((asked) => asked.body);

it("offers the tasks that there are, and a command", async () => {
  openNew("/tasks/new");
  const list = await screen.findByRole("list", { name: "Tasks" });
  expect(within(list).getAllByRole("link").map((link) => link.getAttribute("href"))).toEqual([
    "/tasks/new?name=tasks.welcome",
    "/tasks/new?command",
  ]);
});

it("submits what was filled in, with its options, and opens the task", async () => {
  const { server, router } = openNew("/tasks/new?name=tasks.welcome");
  await userEvent.type(await screen.findByLabelText("user_id"), "7");
  await userEvent.click(screen.getByRole("checkbox", { name: /^Give tags/ }));
  await userEvent.click(screen.getByRole("button", { name: "Add one to tags" }));
  await userEvent.type(screen.getByLabelText("tags 1"), "vip");
  await userEvent.type(screen.getByLabelText("Queue"), "mail");
  await userEvent.type(screen.getByLabelText("Priority"), "5");
  await userEvent.selectOptions(screen.getByLabelText("Start"), "after a time");
  await userEvent.type(screen.getByLabelText("After"), "5m");
  await userEvent.selectOptions(screen.getByLabelText("Unique"), "by its name and arguments");
  await userEvent.click(screen.getByRole("button", { name: "Enqueue" }));
  await waitFor(() => expect(router.state.location.pathname).toBe("/tasks/17"));
  expect(sentTo(server.requests, "/api/v1/tasks")).toEqual([
    {
      name: "tasks.welcome",
      args: [],
      kwargs: { user_id: 7, tags: ["vip"] },
      queue: "mail",
      priority: 5,
      delay: 300,
      unique: true,
      on_conflict: "return",
    },
  ]);
});

it("says beside each field what is wrong, sends nothing, and goes to the first", async () => {
  const { server } = openNew("/tasks/new?name=tasks.welcome");
  await userEvent.type(await screen.findByLabelText("user_id"), "0");
  await userEvent.type(screen.getByLabelText("Priority"), "high");
  expect(screen.getByLabelText("user_id")).not.toBeInvalid();
  await userEvent.click(screen.getByRole("button", { name: "Enqueue" }));
  expect(screen.getByLabelText("user_id")).toHaveAccessibleDescription("At least 1");
  expect(screen.getByLabelText("Priority")).toHaveAccessibleDescription("A whole number, like 10");
  expect(screen.getByText("2 fields need another look")).toBeVisible();
  await waitFor(() => expect(screen.getByLabelText("user_id")).toHaveFocus());
  expect(sentTo(server.requests, "/api/v1/tasks")).toEqual([]);
  // It goes away while it is mended.
  await userEvent.type(screen.getByLabelText("user_id"), "{Backspace}3");
  expect(screen.getByLabelText("user_id")).not.toBeInvalid();
});

it("says beside the field what the server refused", async () => {
  const refusal = problem(422, "Unprocessable Content", "task tasks.welcome: 'user_id': there is no such user, not 7");
  openNew("/tasks/new?name=tasks.welcome", { "POST /api/v1/tasks": refusal });
  await userEvent.type(await screen.findByLabelText("user_id"), "7");
  await userEvent.click(screen.getByRole("button", { name: "Enqueue" }));
  await waitFor(() => expect(screen.getByLabelText("user_id")).toHaveAccessibleDescription("There is no such user, not 7"));
});

it("says above the button what is about no field", async () => {
  openNew("/tasks/new?name=tasks.welcome", { "POST /api/v1/tasks": problem(409, "Conflict", "the key is held by task 3") });
  await userEvent.type(await screen.findByLabelText("user_id"), "7");
  await userEvent.click(screen.getByRole("button", { name: "Enqueue" }));
  expect(await screen.findByRole("alert")).toHaveTextContent("the key is held by task 3");
});

it("takes JSON in place of fields, and gives it back to them", async () => {
  const { server } = openNew("/tasks/new?name=hello");
  await userEvent.type(await screen.findByLabelText("user_id"), "7");
  await userEvent.click(screen.getByRole("tab", { name: "JSON" }));
  const field = screen.getByLabelText("Arguments by name");
  expect(field).toHaveValue('{\n  "user_id": 7\n}');
  await userEvent.clear(field);
  await userEvent.type(field, '{{"user_id": 8, "other": 1}');
  await userEvent.click(screen.getByRole("button", { name: "Enqueue and stay" }));
  expect(field).toHaveAccessibleDescription("other: There is no argument «other»");
  await userEvent.clear(field);
  await userEvent.type(field, '{{"user_id": 8, "greeting": ""}');
  await userEvent.click(screen.getByRole("tab", { name: "Fields" }));
  expect(screen.getByLabelText("user_id")).toHaveValue("8");
  // An empty text is seen as one: an empty field would mean that it is left out.
  expect(screen.getByLabelText("greeting")).toHaveValue('""');
  await userEvent.click(screen.getByRole("button", { name: "Enqueue and stay" }));
  expect(await screen.findByText("Task 17 is enqueued")).toBeVisible();
  expect(sentTo(server.requests, "/api/v1/tasks")).toEqual([{ name: "tasks.welcome", args: [], kwargs: { user_id: 8, greeting: "" } }]);
  expect(screen.getByLabelText("user_id")).toBeVisible();
});

it("does not show a secret while it is written", async () => {
  openNew("/tasks/new?name=tasks.welcome");
  expect(await screen.findByLabelText("password")).toHaveAttribute("type", "password");
});

it("submits a command", async () => {
  const { server } = openNew("/tasks/new?command");
  await userEvent.click(await screen.findByRole("button", { name: "Enqueue" }));
  expect(screen.getByLabelText("Command")).toHaveAccessibleDescription("Write the program and its arguments");
  await userEvent.type(screen.getByLabelText("Command"), "python -c 'print(1)'");
  await userEvent.click(screen.getByRole("button", { name: "Enqueue" }));
  await waitFor(() =>
    expect(sentTo(server.requests, "/api/v1/tasks")).toEqual([{ command: { argv: ["python", "-c", "print(1)"] }, args: [], kwargs: {} }]),
  );
});

it("tells who may not submit", async () => {
  renderPage(<NewTaskPage />, { path: "/tasks/new", session: viewer, answers: { "GET /api/v1/registry": registry } });
  expect(await screen.findByText("Your role does not reach this")).toBeVisible();
});

function openEdit(task: Partial<wire.TaskDetail>, answers: Answers = {}) {
  const detail = { id: 5, name: "tasks.welcome", kind: "function", queue: "mail", priority: 3, job: null, tags: ["late"], ...task };
  return renderPage(<EditTaskPage />, {
    path: "/tasks/:id/edit",
    at: "/tasks/5/edit",
    answers: { "GET /api/v1/registry": registry, "GET /api/v1/tasks/5": detail, "POST /api/v1/tasks/5/reenqueue": made, ...answers },
  });
}

it("enqueues a copy with what was changed, and keeps what is secret", async () => {
  const { server, router } = openEdit({ arguments: { user_id: 7, greeting: "hi", password: "[redacted]" } });
  const field = await screen.findByLabelText("user_id");
  expect(field).toHaveValue("7");
  expect(screen.queryByLabelText("password")).toBeNull();
  await userEvent.clear(field);
  await userEvent.type(field, "8");
  await userEvent.clear(screen.getByLabelText("Tags"));
  await userEvent.click(screen.getByRole("button", { name: "Enqueue the copy" }));
  await waitFor(() => expect(router.state.location.pathname).toBe("/tasks/17"));
  expect(sentTo(server.requests, "/api/v1/tasks/5/reenqueue")).toEqual([
    { args: [], kwargs: { user_id: 8, greeting: "hi" }, keep: ["password"], tags: [] },
  ]);
});

it("makes one copy, however often it is sent because an answer was lost, and another of what is changed", async () => {
  let answers = 0;
  const lost = () => (++answers < 4 ? problem(504, "Gateway Timeout", "no answer in time") : made);
  const { router } = openEdit({ arguments: { user_id: 7 } }, { "POST /api/v1/tasks/5/reenqueue": lost });
  const keys: (string | null)[] = [];
  const { fetch } = globalThis;
  vi.stubGlobal("fetch", (request: Request) => {
    if (request.method === "POST") keys.push(request.headers.get("Idempotency-Key"));
    return fetch(request);
  });
  const send = async (): Promise<void> => {
    const before = keys.length;
    await userEvent.click(await screen.findByRole("button", { name: "Enqueue the copy" }));
    await waitFor(() => expect(keys).toHaveLength(before + 1));
  };
  await send();
  expect(await screen.findByText("no answer in time")).toBeVisible();
  await send();
  expect(keys[0]).toMatch(/^[0-9a-f]{32}$/);
  expect(keys[1]).toBe(keys[0]);
  await userEvent.type(await screen.findByLabelText("user_id"), "1");
  await send();
  expect(await screen.findByText("no answer in time")).toBeVisible();
  await send();
  expect(keys[2]).not.toBe(keys[0]);
  expect(keys[3]).toBe(keys[2]);
  await waitFor(() => expect(router.state.location.pathname).toBe("/tasks/17"));
});

it("keeps a number that it cannot hold, and does not send what it was rounded to", async () => {
  const answer = '{"id": 5, "name": "tasks.welcome", "kind": "function", "queue": "mail", "priority": 3, "job": null, "tags": [], "arguments": {"user_id": 7, "tags": [9007199254740993]}}';
  const { server } = openEdit({}, { "GET /api/v1/tasks/5": new Response(answer, { headers: { "Content-Type": "application/json" } }) });
  expect(await screen.findByText(/too large for a browser/)).toBeVisible();
  await userEvent.click(screen.getByRole("button", { name: "Enqueue the copy" }));
  await waitFor(() =>
    expect(sentTo(server.requests, "/api/v1/tasks/5/reenqueue")).toEqual([{ args: [], kwargs: { user_id: 7 }, keep: ["tags"], tags: [] }]),
  );
});

it("sends a secret that is given anew", async () => {
  const { server } = openEdit({ arguments: { user_id: 7, password: "[redacted]" } });
  await userEvent.click(await screen.findByRole("button", { name: /^Give it anew/ }));
  await userEvent.type(screen.getByLabelText("password"), "new");
  await userEvent.click(screen.getByRole("button", { name: "Enqueue the copy" }));
  await waitFor(() =>
    expect(sentTo(server.requests, "/api/v1/tasks/5/reenqueue")).toEqual([
      { args: [], kwargs: { user_id: 7, password: "new" }, tags: ["late"] },
    ]),
  );
});

it("says why a copy cannot be made", async () => {
  openEdit({ name: "gone.away", arguments: {} });
  expect(await screen.findByText("This server knows no task «gone.away»")).toBeVisible();
});

it("shows a command to be changed", async () => {
  const { server } = openEdit({ kind: "command", name: "headrace.command", arguments: { argv: ["ls", "a b"] } });
  expect(await screen.findByLabelText("Command")).toHaveValue("ls 'a b'");
  await userEvent.type(screen.getByLabelText("Command"), " -l");
  await userEvent.click(screen.getByRole("button", { name: "Enqueue the copy" }));
  await waitFor(() =>
    expect(sentTo(server.requests, "/api/v1/tasks/5/reenqueue")).toEqual([{ command: { argv: ["ls", "a b", "-l"] }, tags: ["late"] }]),
  );
});
