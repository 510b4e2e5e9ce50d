/** How something that waits for a word is told. Pure. */

import type { wire } from "@/api";
import { deciderOf } from "@/app/roles";

type Waiting = Pick<wire.TaskSummary, "name" | "label" | "kind">;

/** What it is called: as its composition calls it, else by its task. */
export function titleOf(task: Waiting): string {
  return task.label ?? task.name;
}

/** A step of a workflow that only asks; the work is what comes behind it. */
export function isQuestion(task: Waiting): boolean {
  return task.name === "headrace.workflows.builtin.approved";
}

/** What approving it sets going. */
export function kindText(task: Waiting): string {
  if (task.kind === "command") return "a command on a worker";
  if (task.kind === "session") return "a session on a worker";
  if (isQuestion(task)) return "a question of a workflow";
  return task.label === null ? "a task" : `task ${task.name}`;
}

/** Whose word it waits for. */
export function askedText(role: string | null): string {
  const decider = deciderOf(role);
  const word = decider === "admin" ? "an admin" : "an operator";
  // Of a role that only a workflow knows, admins answer for it.
  return role === null || role === decider || decider === "operator" ? word : `${role}, by ${word}`;
}

/** The command as one would type it: words with anything else than plain characters are quoted. */
export function commandLine(task: Waiting, value: unknown): string | null {
  if (task.kind !== "command" || typeof value !== "object" || value === null || !("argv" in value)) return null;
  const { argv } = value;
  if (!Array.isArray(argv) || !argv.every((word) => typeof word === "string")) return null;
  return argv.map(quoted).join(" ");
}

function quoted(word: string): string {
  return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`;
}
