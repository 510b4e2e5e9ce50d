/** What could be written at the cursor of a search. Pure: the known values come in. */

import { KEYS, keyOf, quoted, readTerms, STATE_WORDS, STATES, type Key, type Term } from "./query";

/** Values by key that somebody could mean; a key that is left out has none that are known. */
export type Known = Partial<Readonly<Record<Key, readonly string[]>>>;

export interface Suggestion {
  /** What takes the place of the text between `from` and `to`. */
  readonly insert: string;
  readonly from: number;
  readonly to: number;
  readonly label: string;
  readonly hint: string;
  /** There is more to write behind it. */
  readonly goesOn: boolean;
}

const MOST = 12;

const HINTS: Readonly<Record<Key, string>> = {
  state: "failed, running, pending …",
  queue: "the queue it is in",
  name: "the task's name; tasks.mail.* for all that begin so",
  error: "a part of the error's class or message",
  tag: "one of its tags",
  id: "its number",
  worker: "who holds it, or ran it last",
  job: "the number of its job",
  owner: "in whose name it runs",
  dead: "yes: failed, and kept as a dead letter",
};

const FIXED: Known = { state: [...STATES, ...Object.keys(STATE_WORDS)], dead: ["yes", "no"] };

export function complete(text: string, cursor: number, known: Known): readonly Suggestion[] {
  const term = readTerms(text).find((each) => each.from < cursor && cursor <= each.to);
  if (term === undefined) return suggestKeys("", cursor, cursor);
  if (term.key === null) {
    const word = text.slice(term.from, cursor);
    if (/^[A-Za-z_]+$/.test(word)) return suggestKeys(word, term.from, term.to);
    return [];
  }
  return suggestValues(term.key, term, text, cursor, known);
}

/** The text with what was chosen, and where the cursor is then. */
export function apply(text: string, suggestion: Suggestion): { readonly text: string; readonly cursor: number } {
  const rest = text.slice(suggestion.to);
  const gap = suggestion.goesOn || rest.startsWith(" ") ? "" : " ";
  const before = `${text.slice(0, suggestion.from)}${suggestion.insert}${gap}`;
  return { text: `${before}${rest}`, cursor: before.length };
}

function suggestKeys(word: string, from: number, to: number): readonly Suggestion[] {
  const lower = word.toLowerCase();
  const alias = keyOf(lower);
  return KEYS.filter((key) => key.startsWith(lower) || key === alias).map((key) => ({
    insert: `${key}:`,
    from,
    to,
    label: `${key}:`,
    hint: HINTS[key],
    goesOn: true,
  }));
}

function suggestValues(key: Key, term: Term, text: string, cursor: number, known: Known): readonly Suggestion[] {
  const start = term.from + (term.written ?? "").length + 1;
  if (cursor < start) return [];
  const value = term.values.find((each) => each.from <= cursor && cursor <= each.to);
  const from = value?.from ?? cursor;
  const to = value?.to ?? cursor;
  const written = text.slice(from, cursor).replace(/^"/, "").toLowerCase();
  const others = new Set(term.values.filter((each) => each !== value).map((each) => each.text));
  const values = (FIXED[key] ?? known[key] ?? []).filter((each) => !others.has(each));
  const begins = values.filter((each) => each.toLowerCase().startsWith(written));
  const contains = values.filter((each) => !begins.includes(each) && each.toLowerCase().includes(written));
  const found = [...begins, ...contains];
  // What is written in full already needs no suggestion of itself.
  if (found.length === 1 && found[0] === value?.text) return [];
  return found.slice(0, MOST).map((each) => ({ insert: quoted(each), from, to, label: each, hint: "", goesOn: false }));
}
