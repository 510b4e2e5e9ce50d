/**
 * The one way to the server: a typed fetch of the paths that its OpenAPI document names.
 *
 *     const queues = await call(api.GET("/api/v1/queues"));
 *
 * `call` gives the data or throws a ProblemError, so that queries and mutations of TanStack Query need nothing else.
 */

import createClient, { type Middleware } from "openapi-fetch";

import { asProblem, problemOf } from "./problem";
import type { paths } from "./schema";

const SAFE: ReadonlySet<string> = new Set(["GET", "HEAD", "OPTIONS"]);
const CSRF_COOKIE = "headrace_csrf";
const CSRF_HEADER = "X-CSRF-Token";

/** Called with every answer 401 but that to a login: whoever shows the session forgets it. */
let signedOut: () => void = () => undefined;

export function whenSignedOut(act: () => void): void {
  signedOut = act;
}

/** The value that only pages of this origin can read; acts by cookie have to show it. */
export function csrfOf(cookies: string): string | null {
  for (const cookie of cookies.split(";")) {
    const [name, ...rest] = cookie.trim().split("=");
    if (name === CSRF_COOKIE) return decodeURIComponent(rest.join("="));
  }
  return null;
}

const session: Middleware = {
  onRequest({ request }) {
    if (!SAFE.has(request.method)) {
      const token = csrfOf(document.cookie);
      if (token !== null) request.headers.set(CSRF_HEADER, token);
    }
    return request;
  },
  onResponse({ request, response }) {
    const logsIn = request.method === "POST" && new URL(request.url).pathname === "/api/v1/session";
    if (response.status === 401 && !logsIn) signedOut();
    return undefined;
  },
};

export const api = createClient<paths>({
  baseUrl: typeof location === "undefined" ? "" : location.origin,
  credentials: "same-origin",
  headers: { Accept: "application/json" },
  // Looked up at each call, so that a test may put its own in place.
  fetch: (request) => globalThis.fetch(request),
  // Lists are repeated, as the server reads them: ?queue=a&queue=b
  querySerializer: { array: { style: "form", explode: true } },
});
api.use(session);

interface Answered<Data> {
  readonly data?: Data;
  readonly error?: unknown;
  readonly response: Response;
}

/** The data of an answer. Throws ProblemError. */
export async function call<Data>(answered: Promise<Answered<Data>>): Promise<Data> {
  let answer: Answered<Data>;
  try {
    answer = await answered;
  } catch (error) {
    if (error instanceof DOMException && error.name === "AbortError") throw error;
    throw asProblem(error);
  }
  if (!answer.response.ok) throw problemOf(answer.error, answer.response);
  return answer.data as Data;
}
