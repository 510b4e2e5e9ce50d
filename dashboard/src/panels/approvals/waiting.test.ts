import { expect, it } from "vitest";

import { askedText, commandLine, kindText, titleOf } from "./waiting";

const task = { name: "tasks.refund", label: null, kind: "function" } as const;
const command = { name: "command", label: null, kind: "command" } as const;

it("is called as its composition calls it", () => {
  expect(titleOf(task)).toBe("tasks.refund");
  expect(titleOf({ ...task, label: "pay it?" })).toBe("pay it?");
});

it("says what approving sets going", () => {
  expect(kindText(task)).toBe("a task");
  expect(kindText({ ...task, label: "give it back" })).toBe("task tasks.refund");
  expect(kindText(command)).toBe("a command on a worker");
  expect(kindText({ ...task, name: "headrace.workflows.builtin.approved" })).toBe("a question of a workflow");
});

it("says whose word it waits for", () => {
  expect([null, "user", "operator", "admin", "finance"].map(askedText)).toEqual([
    "an operator",
    "an operator",
    "an operator",
    "an admin",
    "finance, by an admin",
  ]);
});

it("shows a command as one would type it", () => {
  expect(commandLine(command, { argv: ["python", "-c", "print('a b')", "--to=/tmp/x"] })).toBe(
    `python -c 'print('\\''a b'\\'')' --to=/tmp/x`,
  );
  expect(commandLine(command, { argv: ["rm", ""] })).toBe("rm ''");
});

it("shows no command where there is none", () => {
  expect(commandLine(task, { argv: ["x"] })).toBeNull();
  for (const value of [null, {}, { argv: "x" }, { argv: [1] }]) expect(commandLine(command, value)).toBeNull();
});
