/** A page in a test: with a session, a router, and a server that is made of answers. */

import { QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { render, type RenderResult } from "@testing-library/react";
import type { ReactElement } from "react";
import { createMemoryRouter, Outlet, RouterProvider } from "react-router";
import { vi } from "vitest";

import type { Session } from "@/app/roles";
import { SessionGate } from "@/app/session";
import { LiveContext, LiveHub } from "@/live";
import { ConfirmProvider, ToastProvider } from "@/ui";

export const admin: Session = {
  name: "ada",
  role: "admin",
  scopes: ["admin", "control", "read", "submit"],
  auth: true,
  kind: "session",
  csrf: "c",
  expires_at: null,
  version: "0.1.0",
  permissions: { submit: true, control: true, operate: true, administer: true, see_all: true, manage_tokens: true },
};
export const viewer: Session = {
  ...admin,
  name: "vic",
  role: "viewer",
  scopes: ["read"],
  permissions: { submit: false, control: false, operate: false, administer: false, see_all: true, manage_tokens: true },
};
export const operator: Session = {
  ...admin,
  name: "olu",
  role: "operator",
  scopes: ["control", "read", "submit"],
  permissions: { ...admin.permissions, administer: false },
};
export const user: Session = {
  ...operator,
  name: "uma",
  role: "user",
  permissions: { ...operator.permissions, operate: false, see_all: false },
};

export interface Asked {
  readonly method: string;
  readonly path: string;
  readonly query: string;
  readonly body: unknown;
}

/** By "GET /api/v1/queues": a body, a Response, or what makes one of the request. */
export type Answers = Readonly<Record<string, unknown>>;

export class AnsweringServer {
  readonly requests: Asked[] = [];

  constructor(private readonly answers: Answers) {}

  readonly fetch = async (request: Request): Promise<Response> => {
    const url = new URL(request.url);
    const text = await request.text();
    const asked: Asked = {
      method: request.method,
      path: decodeURIComponent(url.pathname),
      query: url.search.slice(1),
      body: text === "" ? null : (JSON.parse(text) as unknown),
    };
    this.requests.push(asked);
    const known = this.answers[`${asked.method} ${asked.path}`];
    const answer: unknown = typeof known === "function" ? await (known as (asked: Asked) => unknown)(asked) : known;
    if (answer instanceof Response) return answer.clone();
    if (answer === undefined) return problem(404, "Not Found", `no answer for ${asked.method} ${asked.path}`);
    return Response.json(answer);
  };
}

export function problem(status: number, title: string, detail: string | null = null, headers: HeadersInit = {}): Response {
  const body = { type: "about:blank", title, status, detail, instance: "/", request_id: "r1" };
  return new Response(JSON.stringify(body), {
    status,
    headers: { "Content-Type": "application/problem+json", ...headers },
  });
}

interface PageOptions {
  /** The pattern of the route: "/queues/:name". */
  readonly path?: string;
  /** The address that is open. */
  readonly at?: string;
  readonly session?: Session | null;
  readonly answers?: Answers;
  readonly live?: LiveHub;
}

export interface ShownPage extends RenderResult {
  readonly server: AnsweringServer;
  readonly router: ReturnType<typeof createMemoryRouter>;
}

/** A socket that never opens: pages in tests are live when they are given a hub of their own. */
function silentHub(): LiveHub {
  return new LiveHub({
    open: () => ({ close: () => undefined }) as unknown as WebSocket,
    after: () => 0,
    forget: () => undefined,
    now: Date.now,
    random: () => 0.5,
  });
}

export function renderPage(page: ReactElement, options: PageOptions = {}): ShownPage {
  const { path = "/", at = path, session = admin, answers = {}, live = silentHub() } = options;
  const server = new AnsweringServer({
    "GET /api/v1/session": session ?? problem(401, "Unauthorized"),
    ...answers,
  });
  vi.stubGlobal("fetch", server.fetch);
  const queries = new QueryClient({ defaultOptions: { queries: { retry: false } } });
  const router = createMemoryRouter(
    [
      {
        element: (
          <SessionGate>
            <Outlet />
          </SessionGate>
        ),
        children: [{ path, element: page }, { path: "*", element: <p>another page</p> }],
      },
    ],
    { initialEntries: [at] },
  );
  const shown = render(
    <QueryClientProvider client={queries}>
      <LiveContext value={live}>
        <ToastProvider>
          <ConfirmProvider>
            <RouterProvider router={router} />
          </ConfirmProvider>
        </ToastProvider>
      </LiveContext>
    </QueryClientProvider>,
  );
  return { ...shown, server, router };
}
