/** Acts on many: what they are about, and what is said before and after. */

import type { wire } from "@/api";

import { criteriaOf, type BulkAct, type Criteria } from "../requests";
import { STATES, type Filters } from "../search/query";

/** Rows that were ticked, or everything that the search finds. */
export type Chosen =
  | { readonly kind: "rows"; readonly ids: readonly number[] }
  | { readonly kind: "matching"; readonly filters: Filters };

const ENDED: readonly wire.TaskState[] = ["failed", "cancelled", "completed"];
const POSSIBLE: Readonly<Record<BulkAct, readonly wire.TaskState[]>> = {
  retry: ENDED,
  cancel: STATES.filter((state) => ![...ENDED, "rejected"].includes(state)),
  delete: STATES,
};

const DONE: Readonly<Record<BulkAct, string>> = { retry: "retried", cancel: "cancelled", delete: "deleted" };

/**
 * What to send. A retry of chosen rows takes whatever of them has ended; one of a search takes what failed, unless the
 * search says which states. null: nothing that it finds could be acted on.
 */
export function criteriaFor(act: BulkAct, chosen: Chosen): Criteria | null {
  if (chosen.kind === "rows") {
    return { id: [...chosen.ids], ...(act === "retry" ? { status: [...POSSIBLE.retry] } : {}) };
  }
  const { status } = chosen.filters;
  const possible = status.filter((state) => POSSIBLE[act].includes(state));
  if (status.length > 0 && possible.length === 0) return null;
  return criteriaOf({ ...chosen.filters, status: possible });
}

export interface Words {
  readonly title: string;
  readonly act: string;
  readonly body: string;
}

const BODIES: Readonly<Record<BulkAct, string>> = {
  retry: "Each runs once more, with a fresh budget of attempts.",
  cancel: "What waits ends at once. What runs is told to stop, and what waits for it is cancelled as well.",
  delete: "They are gone with their results and logs. What runs, and what others still need, stays.",
};

export function wordsFor(act: BulkAct, chosen: Chosen, count: wire.Count): Words {
  const noun = count.n === 1 && !count.more ? "task" : "tasks";
  const number = `${count.n.toLocaleString("en-US")}${count.more ? " or more" : ""}`;
  const left = chosen.kind === "rows" && count.n < chosen.ids.length ? chosen.ids.length - count.n : 0;
  const rest = left === 0 ? "" : ` ${left === 1 ? "One" : left} of those you chose cannot be ${DONE[act]} now and ${left === 1 ? "stays" : "stay"}.`;
  const open = count.more ? " Counting stopped there; all that are found are meant." : "";
  const name = `${act.charAt(0).toUpperCase()}${act.slice(1)}`;
  return { title: `${name} ${number} ${noun}?`, act: `${name} ${number} ${noun}`, body: `${BODIES[act]}${rest}${open}` };
}

const ANSWERS: Readonly<Record<string, string>> = {
  cancelling: "told to stop",
  too_late: "had ended before",
  unknown: "were gone",
  held: "are held by a worker",
  needed: "are needed by others",
};

/** "17 retried, 1 refused" */
export function answersText(answers: Readonly<Record<string, number>>): string {
  const said = Object.entries(answers)
    .filter(([, n]) => n > 0)
    .map(([answer, n]) => `${n.toLocaleString("en-US")} ${ANSWERS[answer] ?? answer.replaceAll("_", " ")}`);
  return said.length === 0 ? "Nothing changed" : said.join(", ");
}

export function noneText(act: BulkAct): string {
  return `None of these can be ${DONE[act]}`;
}
