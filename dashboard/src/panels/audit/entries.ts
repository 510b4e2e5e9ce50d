/** What the audit log says, in the words and links of a page. Pure. */

import type { Tone } from "@/ui";

/** Acts that the log knows, to choose from; others can be written as well. */
export const ACTS: readonly string[] = [
  "breakers.open",
  "breakers.reset",
  "dead_letters.discard",
  "dead_letters.replay",
  "events.send",
  "jobs.add",
  "jobs.cancel",
  "jobs.retry",
  "queues.limit",
  "queues.pause",
  "queues.rate",
  "queues.resume",
  "schedules.change",
  "schedules.create",
  "schedules.pause",
  "schedules.remove",
  "schedules.resume",
  "schedules.run",
  "session.begin",
  "session.end",
  "tasks.approve",
  "tasks.cancel",
  "tasks.clear",
  "tasks.delete",
  "tasks.reject",
  "tasks.retry",
  "tasks.reveal",
  "tokens.create",
  "tokens.revoke",
  "users.add",
  "users.change",
];

const PAGES: ReadonlyMap<string, string> = new Map([
  ["task", "/tasks/"],
  ["job", "/jobs/"],
  ["queue", "/queues/"],
  ["schedule", "/schedules/"],
  ["breaker", "/breakers/"],
  ["user", "/accounts/"],
]);

/** The address of what was acted on; null for many things, and for what has no page. */
export function linkOf(subject: string): string | null {
  const [kind = "", ...rest] = subject.split("/");
  const name = rest.join("/");
  const page = PAGES.get(kind);
  return page === undefined || name === "" || name === "*" ? null : page + encodeURIComponent(name);
}

export interface Outcome {
  readonly tone: Tone;
  readonly text: string;
  /** What went wrong, where it did. */
  readonly detail: string | null;
}

export function outcomeOf(outcome: string | null): Outcome {
  if (outcome === "done") return { tone: "good", text: "done", detail: null };
  if (outcome === null) {
    return { tone: "warn", text: "not known", detail: "It was begun, and nobody said how it ended: the server may have been stopped." };
  }
  return { tone: "bad", text: "refused", detail: outcome };
}

/** A detail in one line: {"n": 5, "per": null} → "n: 5". What is empty says nothing. */
export function detailText(detail: unknown): string {
  if (typeof detail !== "object" || detail === null || Array.isArray(detail)) return detail == null ? "" : JSON.stringify(detail);
  return Object.entries(detail)
    .filter(([, value]) => !isEmpty(value))
    .map(([name, value]) => `${name}: ${typeof value === "string" ? value : JSON.stringify(value)}`)
    .join(", ");
}

function isEmpty(value: unknown): boolean {
  return value == null || value === "" || value === false || (Array.isArray(value) && value.length === 0) || isEmptyObject(value);
}

function isEmptyObject(value: unknown): boolean {
  return typeof value === "object" && value !== null && !Array.isArray(value) && Object.keys(value).length === 0;
}
