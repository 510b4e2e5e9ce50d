/** A program to be run: what is filled in, and what is sent. */

import type { wire } from "@/api";

import type { Made } from "./payload";

export interface CommandDraft {
  /** One line, as somebody would write it in a shell. */
  readonly line: string;
  readonly cwd: string;
  /** NAME=value, one in each line. */
  readonly env: string;
  readonly stdin: string;
}

export const NO_COMMAND: CommandDraft = { line: "", cwd: "", env: "", stdin: "" };

export function commandOf(draft: CommandDraft): Made<wire.Command> {
  const wrongs = new Map<string, string>();
  const argv = splitWords(draft.line);
  if (argv === null) wrongs.set("argv", "A quote is not closed");
  else if (argv.length === 0) wrongs.set("argv", "Write the program and its arguments");
  const env: Record<string, string> = {};
  for (const [at, line] of draft.env.split("\n").entries()) {
    if (line.trim() === "") continue;
    const [, name, value] = /^\s*([^=\s]+)=(.*)$/.exec(line) ?? [];
    if (name === undefined) wrongs.set("env", `Line ${at + 1} is not NAME=value`);
    else env[name] = value ?? "";
  }
  const value: wire.Command = {
    argv: argv ?? [],
    ...(Object.keys(env).length === 0 ? {} : { env }),
    ...(draft.cwd.trim() === "" ? {} : { cwd: draft.cwd.trim() }),
    ...(draft.stdin === "" ? {} : { stdin: draft.stdin }),
  };
  return { value, wrongs };
}

/** What shows a command that was run; null where what is stored is none. */
export function commandDraftOf(stored: unknown): CommandDraft | null {
  if (typeof stored !== "object" || stored === null) return null;
  const { argv, env, cwd, stdin } = stored as Readonly<Record<string, unknown>>;
  if (!Array.isArray(argv)) return null;
  const lines = typeof env === "object" && env !== null ? Object.entries(env).map(([name, value]) => `${name}=${String(value)}`) : [];
  return {
    line: argv.map((word) => quoteWord(String(word))).join(" "),
    cwd: typeof cwd === "string" ? cwd : "",
    env: lines.join("\n"),
    stdin: typeof stdin === "string" ? stdin : "",
  };
}

/**
 * Words of a line: blanks part them, quotes and backslashes keep them together. Nothing is replaced as a shell would.
 * null: a quote is not closed.
 */
export function splitWords(line: string): string[] | null {
  const words: string[] = [];
  let word: string | null = null;
  let quote: string | null = null;
  for (let at = 0; at < line.length; at += 1) {
    const character = line[at] ?? "";
    if (quote === "'" && character !== "'") word = (word ?? "") + character;
    else if (character === "\\" && at + 1 < line.length && (quote === null || /["\\]/.test(line[at + 1] ?? ""))) {
      at += 1;
      word = (word ?? "") + (line[at] ?? "");
    } else if (quote !== null && character === quote) quote = null;
    else if (quote === null && (character === "'" || character === '"')) {
      quote = character;
      word ??= "";
    } else if (quote === null && /\s/.test(character)) {
      if (word !== null) words.push(word);
      word = null;
    } else word = (word ?? "") + character;
  }
  if (quote !== null) return null;
  if (word !== null) words.push(word);
  return words;
}

function quoteWord(word: string): string {
  return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`;
}
