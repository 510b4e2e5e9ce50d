/** Where a refusal belongs in the form. The server names the field where it checks its shape, and tells in words what is wrong with its meaning. */

import { placedErrors, type ProblemError } from "@/api";

import { FIELDS, type Field, type Wrongs } from "./form";

const WORDS: readonly (readonly [RegExp, Field])[] = [
  [/cron expression/, "cron"],
  [/time zone|^tz[= ]/, "tz"],
  [/there is a schedule .* already|^the name of a schedule/, "name"],
  [/^no task '/, "task"],
  [/^task \S+: /, "kwargs"],
  [/Every\.interval|interval/, "every"],
  [/would never fire/, "at"],
  [/catch_up=|overlap=/, "overlap"],
  [/jitter/, "jitter"],
  [/grace/, "grace"],
  [/^the queue|queue name/, "queue"],
];

export interface Placed {
  readonly fields: Wrongs;
  readonly rest: ProblemError | null;
}

/** What is wrong beside which field; the rest is what no field is to blame for. */
export function placed(error: unknown, shown: ReadonlySet<Field>): Placed {
  const { fields, rest } = placedErrors(error, FIELDS);
  if (rest === null || rest.wrongs.length > 0 || rest.detail === null || ![409, 422].includes(rest.status)) return { fields, rest };
  const { detail } = rest;
  const found = WORDS.find(([words, field]) => shown.has(field) && words.test(detail))?.[1];
  return found === undefined ? { fields, rest } : { fields: { ...fields, [found]: detail }, rest: null };
}
