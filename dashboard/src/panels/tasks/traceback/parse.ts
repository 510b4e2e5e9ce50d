/**
 * A Python traceback as data: chained errors, their frames, groups of errors. Whatever it does not understand is kept as
 * text; nothing of what was written is lost, for `text` is always there to be copied.
 */

export interface Frame {
  readonly file: string;
  readonly line: number;
  /** The function; null for the place of a SyntaxError. */
  readonly where: string | null;
  /** The source, and the marks below it that point at a part of it. */
  readonly code: readonly string[];
  /** How many times more it was called by itself. */
  readonly repeated: number;
  /** The package or the module of the standard library that it belongs to; null for code of one's own. */
  readonly library: string | null;
}

/** Text between frames: «… 1,204 characters left out …», or what was cut in the middle. */
export interface Gap {
  readonly gap: string;
}

export type Entry = Frame | Gap;

export interface Link {
  /** How it came from the one before. */
  readonly relation: "cause" | "context" | null;
  readonly entries: readonly Entry[];
  readonly errorClass: string;
  readonly message: string;
  /** The errors of an ExceptionGroup, each with what led to it. */
  readonly members: readonly (readonly Link[])[];
}

export interface Traceback {
  /** In the order of printing: the last is what was raised. */
  readonly links: readonly Link[];
  readonly text: string;
}

export function isFrame(entry: Entry): entry is Frame {
  return "file" in entry;
}

const HEADER = /^(?:Exception Group )?Traceback \(most recent call last\):$/;
const FRAME = /^ {2}File "(.*)", line (\d+)(?:, in (.*))?$/;
const REPEATED = /^ {2}\[Previous line repeated (\d+) more times?\]$/;
const LEFT_OUT = /^… [\d,]+ characters left out …$/;
const ERROR = /^([\p{L}_][\p{L}\p{N}_]*(?:\.[\p{L}_<][\p{L}\p{N}_<>]*)*)(?::(?: (.*))?)?$/su;
const RELATIONS: Readonly<Record<string, Link["relation"]>> = {
  "The above exception was the direct cause of the following exception:": "cause",
  "During handling of the above exception, another exception occurred:": "context",
};

export function parseTraceback(text: string): Traceback {
  const tokens = tokenise(text.replace(/\n+$/, "").split("\n"));
  const { links } = readChain(tokens, 0, 0);
  return { links, text };
}

// Groups are drawn with bars; depth counts them. Without a group every line is at depth 0.
type Token =
  | { readonly kind: "line"; readonly depth: number; readonly text: string }
  | { readonly kind: "open" | "next" | "close"; readonly depth: number };

function tokenise(lines: readonly string[]): readonly Token[] {
  const grouped = lines.some((line) => /^ +\+ Exception Group Traceback/.test(line));
  if (!grouped) return lines.map((text) => ({ kind: "line", depth: 0, text }));
  return lines.map((line): Token => {
    const open = /^( +)\+-\+-+ [\d.]+ -+$/.exec(line)?.[1];
    if (open !== undefined) return { kind: "open", depth: open.length / 2 };
    const next = /^( +)\+-+ [\d.]+ -+$/.exec(line)?.[1];
    if (next !== undefined) return { kind: "next", depth: next.length / 2 };
    const close = /^( +)\+-+$/.exec(line)?.[1];
    if (close !== undefined) return { kind: "close", depth: close.length / 2 };
    const header = /^( +)\+ (Exception Group Traceback.*)$/.exec(line);
    if (header !== null) return { kind: "line", depth: (header[1] ?? "").length / 2, text: header[2] ?? "" };
    const barred = /^((?: {2})+)\|(?: (.*))?$/.exec(line);
    if (barred !== null) return { kind: "line", depth: (barred[1] ?? "").length / 2, text: barred[2] ?? "" };
    return { kind: "line", depth: 0, text: line };
  });
}

interface Read {
  readonly links: readonly Link[];
  readonly at: number;
}

/** Chained errors from `at` on. At the top a group stands one bar deeper than what is chained with it. */
function readChain(tokens: readonly Token[], from: number, depth: number): Read {
  const links: Link[] = [];
  let draft = new LinkDraft(null);
  let at = from;
  for (; at < tokens.length; at += 1) {
    const token = tokens[at];
    if (token === undefined) break;
    if (token.kind === "open") {
      const read = readMembers(tokens, at + 1, token.depth + 1);
      draft.members = read.members;
      at = read.at - 1;
      continue;
    }
    if (token.kind !== "line") break;
    if (token.depth < depth) break;
    const relation = RELATIONS[token.text];
    if (relation !== undefined && draft.isComplete) {
      links.push(draft.finish());
      draft = new LinkDraft(relation);
      continue;
    }
    draft.take(token.text);
  }
  if (!draft.isEmpty) links.push(draft.finish());
  return { links, at };
}

function readMembers(
  tokens: readonly Token[],
  from: number,
  depth: number,
): { readonly members: readonly (readonly Link[])[]; readonly at: number } {
  const members: (readonly Link[])[] = [];
  let at = from;
  while (at < tokens.length) {
    const read = readChain(tokens, at, depth);
    members.push(read.links);
    at = read.at;
    const token = tokens[at];
    if (token?.kind === "next" && token.depth === depth) at += 1;
    else if (token?.kind === "close" && token.depth === depth) return { members, at: at + 1 };
    else break;
  }
  return { members, at };
}

class LinkDraft {
  members: Link["members"] = [];
  private readonly entries: Entry[] = [];
  private frame: { file: string; line: number; where: string | null; code: string[]; repeated: number } | null = null;
  private gap: string[] = [];
  private error: string[] = [];

  constructor(private readonly relation: Link["relation"]) {}

  get isEmpty(): boolean {
    return this.entries.length === 0 && this.frame === null && this.error.length === 0 && this.gap.length === 0;
  }

  get isComplete(): boolean {
    return this.error.length > 0;
  }

  take(line: string): void {
    // The message may say anything, even what looks like a frame: only the next relation ends it.
    if (this.error.length > 0) {
      this.error.push(line);
      return;
    }
    if (HEADER.test(line)) return;
    const frame = FRAME.exec(line);
    if (frame !== null) {
      this.closeFrame();
      this.frame = { file: frame[1] ?? "", line: Number(frame[2]), where: frame[3] ?? null, code: [], repeated: 0 };
      return;
    }
    const repeated = REPEATED.exec(line)?.[1];
    if (repeated !== undefined && this.frame !== null) {
      this.frame.repeated = Number(repeated);
      return;
    }
    if (LEFT_OUT.test(line)) {
      this.closeFrame();
      this.gap.push(line);
      return;
    }
    if (this.gap.length > 0 || (this.frame === null && /^\s/.test(line))) {
      // In the middle of what was cut: until the next frame it is not known what a line was.
      if (ERROR.test(line)) this.beginError(line);
      else this.gap.push(line);
      return;
    }
    if (this.frame !== null && /^ {4}/.test(line)) {
      this.frame.code.push(line.slice(4));
      return;
    }
    if (line.trim() === "") return;
    this.beginError(line);
  }

  finish(): Link {
    this.closeFrame();
    const text = this.error.join("\n").trimEnd();
    const [, errorClass = "", message = ""] = ERROR.exec(text) ?? [];
    return {
      relation: this.relation,
      entries: this.entries,
      errorClass,
      message: errorClass === "" ? text : message,
      members: this.members,
    };
  }

  private beginError(line: string): void {
    this.closeFrame();
    this.error.push(line);
  }

  private closeFrame(): void {
    if (this.gap.length > 0) {
      this.entries.push({ gap: this.gap.join("\n") });
      this.gap = [];
    }
    if (this.frame === null) return;
    this.entries.push({ ...this.frame, library: libraryOf(this.frame.file) });
    this.frame = null;
  }
}

/** The package of a file that is not one's own; null for one's own. */
export function libraryOf(file: string): string | null {
  const path = file.replaceAll("\\", "/");
  const frozen = /^<frozen (?:importlib\.)?([^>]+)>$/.exec(path)?.[1];
  if (frozen !== undefined) return frozen;
  const installed = /(?:^|\/)(?:site|dist)-packages\/([^/]+)/.exec(path)?.[1];
  if (installed !== undefined) return installed.replace(/\.py$/, "");
  // An engine that is installed from its source stands in none of these folders.
  if (/(?:^|\/)src\/headrace\//.test(path)) return "headrace";
  const standard = /(?:^|\/)(?:lib\/python\d[\d.]*t?|Lib|python\d+\.zip)\/([^/]+)/.exec(path)?.[1];
  return standard === undefined ? null : standard.replace(/\.py$/, "");
}
