/**
 * What is written into the search of tasks: words, and `key:value`.
 *
 *     state:failed queue:mail error:"no answer" welcome
 *
 * Several values of one key are «or» (`state:failed,cancelled`, or the key twice), different keys are «and», and words
 * have to occur all of them. Quotes keep blanks, commas and colons; `\"` and `\\` stand for themselves inside of them.
 */

import type { wire } from "@/api";

export const STATES = [
  "pending",
  "pending_approval",
  "blocked",
  "claimed",
  "running",
  "paused",
  "cancelling",
  "lost",
  "completed",
  "failed",
  "cancelled",
  "rejected",
] as const satisfies readonly wire.TaskState[];

export const KEYS = ["state", "queue", "name", "error", "tag", "id", "worker", "job", "owner", "dead"] as const;
export type Key = (typeof KEYS)[number];

const ALIASES: Readonly<Record<string, Key>> = {
  status: "state",
  is: "state",
  task: "name",
  tags: "tag",
  dead_letter: "dead",
  deadletter: "dead",
};
/** The server takes one value of these. */
const SINGLE: ReadonlySet<Key> = new Set(["worker", "job", "owner", "dead"]);
/** Words for several states. */
export const STATE_WORDS = {
  waiting: ["pending", "pending_approval", "blocked"],
  active: ["claimed", "running", "paused", "cancelling"],
} as const satisfies Readonly<Record<string, readonly wire.TaskState[]>>;
const YES: ReadonlySet<string> = new Set(["yes", "true", "1"]);
const NO: ReadonlySet<string> = new Set(["no", "false", "0"]);
const LARGEST_ID = Number.MAX_SAFE_INTEGER;
const MOST_VALUES = 100;

/** What the server filters by; empty lists and nulls narrow nothing. */
export interface Filters {
  readonly status: readonly wire.TaskState[];
  readonly queue: readonly string[];
  readonly name: readonly string[];
  readonly error: readonly string[];
  readonly tag: readonly string[];
  readonly id: readonly number[];
  readonly worker: string | null;
  readonly job: number | null;
  readonly owner: string | null;
  readonly dead_letter: boolean | null;
  readonly text: string | null;
}

export const NO_FILTERS: Filters = {
  status: [],
  queue: [],
  name: [],
  error: [],
  tag: [],
  id: [],
  worker: null,
  job: null,
  owner: null,
  dead_letter: null,
  text: null,
};

interface Lists {
  readonly status: wire.TaskState[];
  readonly queue: string[];
  readonly name: string[];
  readonly error: string[];
  readonly tag: string[];
  readonly id: number[];
}

interface Single {
  worker: string | null;
  job: number | null;
  owner: string | null;
  dead_letter: boolean | null;
}

export interface Term {
  /** null: a word. */
  readonly key: Key | null;
  /** As it was written before the colon; null for a word. */
  readonly written: string | null;
  readonly values: readonly Value[];
  readonly from: number;
  readonly to: number;
}

export interface Value {
  readonly text: string;
  readonly from: number;
  readonly to: number;
}

/** Something that cannot be searched for, and where it stands. */
export interface Wrong {
  readonly from: number;
  readonly to: number;
  readonly message: string;
}

export interface Parsed {
  readonly terms: readonly Term[];
  readonly filters: Filters;
  readonly wrongs: readonly Wrong[];
}

export function parseSearch(text: string): Parsed {
  const terms = readTerms(text);
  const wrongs: Wrong[] = [];
  const lists: Lists = { status: [], queue: [], name: [], error: [], tag: [], id: [] };
  const single: Single = { worker: null, job: null, owner: null, dead_letter: null };
  const seen = new Map<Key, Value>();
  const words: string[] = [];

  const refuse = ({ from, to }: { readonly from: number; readonly to: number }, message: string): void => {
    wrongs.push({ from, to, message });
  };

  for (const term of terms) {
    const { key } = term;
    if (key === null) {
      const unknown = unknownKey(term);
      if (unknown === null) words.push(...term.values.map((value) => value.text));
      else refuse(term, unknown);
      continue;
    }
    if (term.values.length === 0) {
      refuse(term, `Write what the ${key} is, or leave «${key}:» out`);
      continue;
    }
    for (const value of term.values) {
      if (SINGLE.has(key)) {
        const before = seen.get(key);
        if (before !== undefined && before.text !== value.text) {
          refuse(value, `A search takes one ${key}; there is «${before.text}» already`);
          continue;
        }
        seen.set(key, value);
      }
      switch (key) {
        case "state": {
          const states = statesOf(value.text);
          if (states === null) refuse(value, noState(value.text));
          else if (value.text.toLowerCase() === "dlq") single.dead_letter = true;
          for (const state of states ?? []) if (!lists.status.includes(state)) lists.status.push(state);
          break;
        }
        case "id":
        case "job": {
          const id = idOf(value.text);
          if (id === null) refuse(value, `The ${key === "id" ? "id" : "id of a job"} is a whole number, not «${value.text}»`);
          else if (key === "job") single.job = id;
          else if (!lists.id.includes(id)) lists.id.push(id);
          break;
        }
        case "dead": {
          const word = value.text.toLowerCase();
          if (YES.has(word)) single.dead_letter = true;
          else if (NO.has(word)) single.dead_letter = false;
          else refuse(value, `dead: is yes or no, not «${value.text}»`);
          break;
        }
        case "worker":
        case "owner":
          single[key] = value.text;
          break;
        case "name":
          if (value.text.slice(0, -1).includes("*")) refuse(value, "A * stands at the end of a name: tasks.mail.*");
          else if (!lists.name.includes(value.text)) lists.name.push(value.text);
          break;
        default:
          if (!lists[key].includes(value.text)) lists[key].push(value.text);
      }
    }
  }
  for (const [key, values] of Object.entries(lists)) {
    if (values.length > MOST_VALUES) refuse({ from: 0, to: text.length }, `${key} takes at most ${MOST_VALUES} values`);
  }
  const filters: Filters = { ...lists, ...single, text: words.length === 0 ? null : words.join(" ") };
  return { terms, filters, wrongs };
}

/** Whether anything narrows what is found. */
export function isNarrowed(filters: Filters): boolean {
  return Object.values(filters).some((value) => (Array.isArray(value) ? value.length > 0 : value !== null));
}

/** The search with these values in the place of all that the key had; without values the key is gone. */
export function withValues(text: string, key: Key, values: readonly string[]): string {
  const kept = readTerms(text).filter((term) => term.key !== key);
  const added = values.length === 0 ? [] : [`${key}:${values.map(quoted).join(",")}`];
  return [...added, ...kept.map((term) => text.slice(term.from, term.to))].join(" ");
}

/** As it has to be written so that it is read as one value. */
export function quoted(value: string): string {
  if (value !== "" && !/[\s",\\]/.test(value)) return value;
  return `"${value.replaceAll(/["\\]/g, (character) => `\\${character}`)}"`;
}

/** Terms with their places. A quote that is not closed reaches to the end: somebody is still writing. */
export function readTerms(text: string): readonly Term[] {
  const terms: Term[] = [];
  let at = 0;
  while (at < text.length) {
    if (isBlank(text[at])) {
      at += 1;
      continue;
    }
    const term = readTerm(text, at);
    terms.push(term);
    at = term.to;
  }
  return terms;
}

function readTerm(text: string, from: number): Term {
  const written = /^[A-Za-z_]+(?=:)/.exec(text.slice(from))?.[0] ?? null;
  const key = written === null ? null : keyOf(written);
  if (written === null || key === null) {
    const value = readValue(text, from, false);
    return { key: null, written, values: [value], from, to: value.to };
  }
  const values: Value[] = [];
  let at = from + written.length + 1;
  for (;;) {
    const value = readValue(text, at, true);
    if (value.text !== "" || text[value.from] === '"') values.push(value);
    at = value.to;
    if (text[at] !== ",") break;
    at += 1;
  }
  return { key, written, values, from, to: at };
}

function readValue(text: string, from: number, stopsAtComma: boolean): Value {
  let at = from;
  let found = "";
  let isQuoted = false;
  while (at < text.length) {
    const character = text[at] ?? "";
    if (isQuoted && character === "\\" && at + 1 < text.length) {
      found += text[at + 1];
      at += 2;
      continue;
    }
    if (character === '"') isQuoted = !isQuoted;
    else if (!isQuoted && (isBlank(character) || (stopsAtComma && character === ","))) break;
    else found += character;
    at += 1;
  }
  return { text: found, from, to: at };
}

export function keyOf(written: string): Key | null {
  const lower = written.toLowerCase();
  return (KEYS as readonly string[]).includes(lower) ? (lower as Key) : (ALIASES[lower] ?? null);
}

/** A word that looks like a key and is none: it would find nothing, and nobody would see why. */
function unknownKey(term: Term): string | null {
  const value = term.values[0]?.text ?? "";
  const negated = /^-([A-Za-z_]+):/.exec(value)?.[1];
  if (negated !== undefined && keyOf(negated) !== null) return "A search cannot leave out: name what you want to see";
  if (term.written === null || value.startsWith(`${term.written}://`)) return null;
  const near = nearest(term.written.toLowerCase(), KEYS);
  const hint = near === null ? `There are ${KEYS.join(", ")}.` : `Did you mean «${near}:»?`;
  return `There is no key «${term.written}:». ${hint} To search for the text itself, write it in quotes`;
}

function statesOf(word: string): readonly wire.TaskState[] | null {
  const lower = word.toLowerCase();
  if (lower === "dlq") return ["failed"];
  if (lower in STATE_WORDS) return STATE_WORDS[lower as keyof typeof STATE_WORDS];
  return (STATES as readonly string[]).includes(lower) ? [lower as wire.TaskState] : null;
}

function noState(word: string): string {
  const near = nearest(word.toLowerCase(), STATES);
  return near === null
    ? `There is no state «${word}»; there are ${STATES.join(", ")}`
    : `There is no state «${word}». Did you mean ${near}?`;
}

function idOf(word: string): number | null {
  if (!/^#?\d{1,16}$/.test(word)) return null;
  const id = Number(word.replace("#", ""));
  return id >= 1 && id <= LARGEST_ID ? id : null;
}

function isBlank(character: string | undefined): boolean {
  return character !== undefined && /\s/.test(character);
}

/** One of them that differs by two letters at most. */
function nearest(word: string, among: readonly string[]): string | null {
  let best: string | null = null;
  let least = Math.min(3, word.length);
  for (const each of among) {
    const distance = editDistance(word, each);
    if (distance < least) {
      least = distance;
      best = each;
    }
  }
  return best;
}

function editDistance(one: string, other: string): number {
  let row = Array.from({ length: other.length + 1 }, (_, at) => at);
  for (let at = 1; at <= one.length; at += 1) {
    const next = [at];
    for (let to = 1; to <= other.length; to += 1) {
      const changed = (row[to - 1] ?? 0) + Number(one[at - 1] !== other[to - 1]);
      next.push(Math.min((row[to] ?? 0) + 1, (next[to - 1] ?? 0) + 1, changed));
    }
    row = next;
  }
  return row[other.length] ?? 0;
}
