/** What can be said about a submission beside its arguments. */

import type { wire } from "@/api";

import type { Made } from "./payload";

export interface OptionsDraft {
  readonly queue: string;
  readonly priority: string;
  readonly when: "now" | "delay" | "at";
  readonly delay: string;
  readonly at: string;
  readonly unique: "no" | "call" | "key";
  readonly key: string;
  readonly conflict: "return" | "reject" | "replace";
  readonly tags: string;
  readonly timeout: string;
  readonly maxAge: string;
}

export const NO_OPTIONS: OptionsDraft = {
  queue: "",
  priority: "",
  when: "now",
  delay: "",
  at: "",
  unique: "no",
  key: "",
  conflict: "return",
  tags: "",
  timeout: "",
  maxAge: "",
};

export type Options = Pick<
  Partial<wire.Submission>,
  "queue" | "priority" | "delay" | "run_at" | "unique" | "on_conflict" | "tags" | "timeout" | "max_age"
>;

/** What is left empty is as the task has it. Wrongs by the names under which the server knows them. */
export function optionsOf(draft: OptionsDraft): Made<Options> {
  const wrongs = new Map<string, string>();
  const value: { -readonly [Name in keyof Options]: Options[Name] } = {};
  const seconds = (name: "delay" | "timeout" | "max_age", text: string): void => {
    const found = parseDuration(text);
    if (found === null) wrongs.set(name, "A length of time, like 90, 5m or 1h 30m");
    else if (name === "timeout" && found === 0) wrongs.set(name, "More than nothing");
    else value[name] = found;
  };
  if (draft.queue.trim() !== "") value.queue = draft.queue.trim();
  if (draft.priority.trim() !== "") {
    const priority = Number(draft.priority);
    if (!/^\s*[+-]?\d+\s*$/.test(draft.priority) || Math.abs(priority) >= 2 ** 31) wrongs.set("priority", "A whole number, like 10");
    else value.priority = priority;
  }
  if (draft.when === "delay") seconds("delay", draft.delay);
  if (draft.when === "at") {
    const at = new Date(draft.at);
    if (Number.isNaN(at.getTime())) wrongs.set("run_at", "A date and a time");
    else value.run_at = at.toISOString();
  }
  if (draft.unique === "call") value.unique = true;
  if (draft.unique === "key") {
    if (draft.key.trim() === "") wrongs.set("unique", "Write the key that one unfinished task may hold");
    else value.unique = draft.key.trim();
  }
  if (draft.unique !== "no") value.on_conflict = draft.conflict;
  const tags = draft.tags.split(",").map((tag) => tag.trim()).filter((tag) => tag !== "");
  if (tags.length > 0) value.tags = [...new Set(tags)];
  if (draft.timeout.trim() !== "") seconds("timeout", draft.timeout);
  if (draft.maxAge.trim() !== "") seconds("max_age", draft.maxAge);
  return { value, wrongs };
}

const UNITS: Readonly<Record<string, number>> = { ms: 0.001, s: 1, m: 60, min: 60, h: 3600, d: 86_400, w: 604_800 };

/** Seconds of "90", "1.5h", "1h 30m"; null for what is no length of time. */
export function parseDuration(text: string): number | null {
  const words = text.trim().toLowerCase();
  if (/^\d+(\.\d+)?$/.test(words)) return Number(words);
  if (!/^(\d+(\.\d+)?\s*(ms|s|min|m|h|d|w)\s*)+$/.test(words)) return null;
  let total = 0;
  for (const [, number, unit] of words.matchAll(/(\d+(?:\.\d+)?)\s*(ms|s|min|m|h|d|w)/g)) {
    total += Number(number) * (UNITS[unit ?? ""] ?? 0);
  }
  return Number(total.toFixed(3));
}
