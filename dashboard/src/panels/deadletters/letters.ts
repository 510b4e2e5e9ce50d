/** What the pages of dead letters compute. Pure. */

import type { wire } from "@/api";
import type { Part } from "@/ui";

/** Which ones; what is empty does not narrow. */
export interface Filters {
  readonly queue: string;
  readonly name: string;
  readonly owner: string;
}

export const NO_FILTERS: Filters = { queue: "", name: "", owner: "" };

export function filtersOf(parameters: URLSearchParams): Filters {
  const of = (name: keyof Filters): string => parameters.get(name) ?? "";
  return { queue: of("queue"), name: of("name"), owner: of("owner") };
}

/** For an address. */
export function parametersOf(filters: Filters): URLSearchParams {
  return new URLSearchParams(Object.entries(filters).filter(([, value]) => value !== ""));
}

export interface Query {
  readonly queue?: string[];
  readonly name?: string[];
  readonly owner?: string;
}

/** For a question to the server. */
export function queryOf({ queue, name, owner }: Filters): Query {
  return {
    ...(queue === "" ? {} : { queue: [queue] }),
    ...(name === "" ? {} : { name: [name] }),
    ...(owner === "" ? {} : { owner }),
  };
}

/** What an act is about: one failure, some by filter, everything, or those that were chosen. */
export type Aim =
  | { readonly kind: "group"; readonly group: string; readonly filters: Filters }
  | { readonly kind: "filter"; readonly filters: Filters }
  | { readonly kind: "chosen"; readonly ids: readonly number[] };

/** The body of a bulk act. Without a filter it has to say that it means all of them. */
export function bodyOf(aim: Exclude<Aim, { kind: "chosen" }>): Omit<wire.DeadLetterFilter, "dry_run"> {
  const query = queryOf(aim.filters);
  if (aim.kind === "group") return { ...query, group: aim.group, all: false };
  return { ...query, all: Object.keys(query).length === 0 };
}

/** "dead letters of queue mail", "every dead letter": what an act is about, in words. */
export function aimText(aim: Aim, failure: string | null): string {
  if (aim.kind === "chosen") return aim.ids.length === 1 ? `task ${aim.ids[0]}` : "those that are chosen";
  const { queue, name, owner } = aim.filters;
  const narrowed = [
    ...(aim.kind === "group" ? [failure ?? "this failure"] : []),
    ...(queue === "" ? [] : [`queue ${queue}`]),
    ...(name === "" ? [] : [`task ${name}`]),
    ...(owner === "" ? [] : [`owner ${owner}`]),
  ];
  if (narrowed.length === 0) return "every dead letter";
  return `${aim.kind === "filter" ? "dead letters of " : ""}${narrowed.join(", ")}`;
}

/** The last part of a class: builtins.TimeoutError → TimeoutError. */
export function shortClass(errorClass: string | null): string {
  return errorClass === null ? "no error" : errorClass.slice(errorClass.lastIndexOf(".") + 1);
}

/** What a bulk act answered: {"retried": 17, "refused": 1} → "17 run again, 1 was refused". */
export function answersText(answers: Readonly<Record<string, number>>): string {
  const words: ReadonlyMap<string, readonly [string, string]> = new Map([
    ["retried", ["runs again", "run again"]],
    ["deleted", ["is removed", "are removed"]],
    ["refused", ["was refused", "were refused"]],
    ["kept", ["was kept", "were kept"]],
  ]);
  const said = Object.entries(answers)
    .filter(([, count]) => count > 0)
    .map(([answer, count]) => {
      const [one, many] = words.get(answer) ?? [answer.replaceAll("_", " "), answer.replaceAll("_", " ")];
      return `${count.toLocaleString("en-US")} ${count === 1 ? one : many}`;
    });
  return said.length === 0 ? "There was none left." : `${said.join(", ")}.`;
}

/** How many of the tasks that ran again are where. */
export function partsOf(tasks: readonly Pick<wire.TaskSummary, "state">[]): readonly Part[] {
  const count = (...states: readonly wire.TaskState[]): number => tasks.filter((task) => states.includes(task.state)).length;
  const parts: readonly Part[] = [
    { tone: "good", value: count("completed"), label: "completed" },
    { tone: "bad", value: count("failed"), label: "failed again" },
    { tone: "active", value: count("claimed", "running"), label: "running" },
    { tone: "ended", value: count("cancelled", "rejected"), label: "cancelled" },
  ];
  return parts.filter((part) => part.value > 0);
}

/** "3 completed, 1 failed again, 2 wait". */
export function partsText(parts: readonly Part[], total: number): string {
  const waiting = total - parts.reduce((sum, part) => sum + part.value, 0);
  const said = parts.map((part) => `${part.value} ${part.label}`);
  return [...said, ...(waiting > 0 ? [`${waiting} ${waiting === 1 ? "waits" : "wait"}`] : [])].join(", ");
}
