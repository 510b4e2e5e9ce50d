/** What the server says when it refuses (RFC 9457), as an error that can be thrown and shown. */

import type { Wrong } from "./schema";

export interface ProblemBody {
  readonly title: string;
  readonly status: number;
  readonly detail?: string | null;
  readonly request_id?: string | null;
  readonly errors?: readonly Wrong[] | null;
}

export class ProblemError extends Error {
  override readonly name = "ProblemError";

  constructor(
    readonly title: string,
    /** 0 when nobody answered. */
    readonly status: number,
    readonly detail: string | null = null,
    readonly requestId: string | null = null,
    readonly wrongs: readonly Wrong[] = [],
    /** Seconds after which to try again, where the server said so. */
    readonly retryAfter: number | null = null,
  ) {
    super(detail ?? title);
  }

  /** Whether the same request may succeed later without anybody changing it. */
  get passes(): boolean {
    return this.status === 0 || this.status === 429 || this.status === 502 || this.status === 503 || this.status === 504;
  }
}

/** The problem behind an answer that is no success. Never throws, whatever a proxy put in the place of the answer. */
export function problemOf(body: unknown, response: Response): ProblemError {
  const retryAfter = secondsOf(response.headers.get("Retry-After"));
  const requestId = response.headers.get("X-Request-ID");
  if (isProblemBody(body)) {
    return new ProblemError(
      body.title,
      response.status,
      body.detail ?? null,
      body.request_id ?? requestId,
      body.errors ?? [],
      retryAfter,
    );
  }
  const title = response.statusText || `The server answered ${response.status}`;
  return new ProblemError(title, response.status, null, requestId, [], retryAfter);
}

/** Any thrown thing as a problem that can be shown. */
export function asProblem(error: unknown): ProblemError {
  if (error instanceof ProblemError) return error;
  // fetch() throws TypeError when there is no connection, and says nothing about it that helps.
  if (error instanceof TypeError && /fetch|network|load/i.test(error.message)) {
    return new ProblemError("The server cannot be reached", 0, "Check that it runs, and the network in between.");
  }
  return new ProblemError("Something went wrong in this page", -1, error instanceof Error ? error.message : String(error));
}

/** Retry-After is a number of seconds, or a date. */
export function secondsOf(header: string | null, now: number = Date.now()): number | null {
  if (header === null || header.trim() === "") return null;
  const seconds = Number(header);
  if (Number.isFinite(seconds)) return Math.max(0, seconds);
  const at = Date.parse(header);
  return Number.isNaN(at) ? null : Math.max(0, Math.ceil((at - now) / 1000));
}

function isProblemBody(body: unknown): body is ProblemBody {
  return typeof body === "object" && body !== null && "title" in body && typeof body.title === "string";
}

export interface PlacedErrors<Name extends string> {
  /** What is wrong with the field of that name. */
  readonly fields: Readonly<Partial<Record<Name, string>>>;
  /** What no field is to blame for; null when everything has its place. */
  readonly rest: ProblemError | null;
}

/**
 * What a refusal (422) says about the fields of a form: `/cron` of the body belongs to the field `cron`, and so does
 * `/cron/0/x`. Give the names of the fields; a name with a slash (`command/argv`) is one further down.
 */
export function placedErrors<Name extends string>(error: unknown, names: readonly Name[]): PlacedErrors<Name> {
  if (error == null) return { fields: {} as Partial<Record<Name, string>>, rest: null };
  const problem = asProblem(error);
  const fields: Partial<Record<Name, string>> = {};
  const left: Wrong[] = [];
  for (const wrong of problem.wrongs) {
    const name = longestOf(names.filter((each) => `${wrong.pointer}/`.startsWith(`/${each}/`)));
    if (wrong.where !== "body" || name === undefined) left.push(wrong);
    else fields[name] = fields[name] === undefined ? wrong.detail : `${fields[name]}; ${wrong.detail}`;
  }
  if (problem.wrongs.length > 0 && left.length === 0) return { fields, rest: null };
  const { title, status, detail, requestId, retryAfter } = problem;
  return { fields, rest: new ProblemError(title, status, detail, requestId, left, retryAfter) };
}

function longestOf<Name extends string>(names: readonly Name[]): Name | undefined {
  return names.reduce<Name | undefined>((best, each) => (best === undefined || each.length > best.length ? each : best), undefined);
}
