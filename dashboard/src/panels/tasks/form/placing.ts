/** What the server refused, beside the field that it is about. */

import { asProblem, ProblemError } from "@/api";

import { pointer } from "./payload";

export interface Placed {
  /** By pointers into the arguments. */
  readonly args: ReadonlyMap<string, string>;
  /** By the names of options and of parts of a command. */
  readonly options: ReadonlyMap<string, string>;
  /** What belongs to no field; null where everything has its place. */
  readonly rest: ProblemError | null;
}

const NOTHING: Placed = { args: new Map(), options: new Map(), rest: null };

/**
 * `names` are those of the arguments that there are fields for; what is about others is said above the form. What is
 * about a part of one stands beside the whole of it, for its parts may be named otherwise here than there.
 */
export function placed(error: unknown, names: readonly string[]): Placed {
  if (error == null) return NOTHING;
  const problem = asProblem(error);
  const args = new Map<string, string>();
  const options = new Map<string, string>();
  const left = problem.wrongs.filter((wrong) => {
    const inside = /^\/kwargs(\/.*)$/.exec(wrong.pointer)?.[1];
    if (inside !== undefined) return !add(args, names, inside, wrong.detail);
    const option = /^\/(?:command\/)?([a-z_]+)/.exec(wrong.pointer)?.[1];
    if (wrong.where !== "body" || option === undefined || option === "args") return true;
    options.set(option, wrong.detail);
    return false;
  });
  if (problem.wrongs.length > 0) return { args, options, rest: left.length === 0 ? null : without(problem, left) };
  const said = argumentErrors(problem.detail ?? "");
  const isPlaced = said !== null && said.every(([at, message]) => add(args, names, at, message));
  return isPlaced ? { args, options, rest: null } : { args: new Map(), options, rest: problem };
}

/** Whether there is a field for it. */
function add(args: Map<string, string>, names: readonly string[], at: string, message: string): boolean {
  const name = names.find((each) => `${at}/`.startsWith(`${pointer("", each)}/`));
  if (name === undefined) return false;
  const whole = pointer("", name);
  const part = at.slice(whole.length + 1).replaceAll("/", ".");
  const said = part === "" ? message : `${part}: ${message}`;
  const before = args.get(whole);
  args.set(whole, before === undefined ? said : `${before}; ${said}`);
  return true;
}

/**
 * "task tasks.welcome: 'user_id': input should be a valid integer, not 'x'; 'greeting' is missing" by pointers.
 * null for what does not speak of arguments.
 */
export function argumentErrors(detail: string): readonly (readonly [string, string])[] | null {
  const said = /^task \S+: ('.*)$/s.exec(detail)?.[1];
  if (said === undefined) return null;
  const found: (readonly [string, string])[] = [];
  // Each begins with its place in quotes; a message may hold a semicolon of its own.
  for (const part of said.split(/; (?='[^']+'(?::| is missing))/)) {
    const [, place, missing, message] = /^'([^']+)'(?:( is missing)|: (.+))$/s.exec(part) ?? [];
    if (place === undefined) return null;
    const at = place.split(".").reduce((above, name) => pointer(above, name), "");
    found.push([at, missing === undefined ? capital(message ?? "") : "Required"]);
  }
  return found;
}

function capital(text: string): string {
  return `${text.charAt(0).toUpperCase()}${text.slice(1)}`;
}

function without(problem: ProblemError, left: ProblemError["wrongs"]): ProblemError {
  return new ProblemError(problem.title, problem.status, problem.detail, problem.requestId, left, problem.retryAfter);
}
