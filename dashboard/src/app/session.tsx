/** Who is logged in, and what they may do. */

import { useMutation, useQuery, useQueryClient, type QueryClient } from "@tanstack/react-query";
import { createContext, useContext, useEffect, type ReactNode } from "react";

import { api, call } from "@/api";
import { whenSignedOut } from "@/api/client";
import { LiveContext, type LiveHub } from "@/live";
import { Problem } from "@/ui";

import { Login } from "./Login";
import { may, mayControl, type Access, type Session } from "./roles";

const KEY = ["session"] as const;
const SessionContext = createContext<Session | null>(null);

/** Inside the shell there always is one. */
export function useSession(): Session {
  const session = useContext(SessionContext);
  if (session === null) throw new Error("useSession() is for what is shown to somebody who is logged in");
  return session;
}

/** `const may = useMay(); may({ role: "operator" }) && <Button …>` */
export function useMay(): (access: Access) => boolean {
  const session = useSession();
  return (access) => may(session, access);
}

/** Whether they may retry, cancel and delete what belongs to this owner. */
export function useMayControl(): (owner: string | null) => boolean {
  const session = useSession();
  return (owner) => mayControl(session, owner);
}

export function Allowed({ children, ...access }: Access & { readonly children: ReactNode }) {
  return useMay()(access) ? children : null;
}

/** Asks who is there; shows the login to nobody, and a server without users to everybody. */
export function SessionGate({ children }: { readonly children: ReactNode }) {
  const queries = useQueryClient();
  const live = useContext(LiveContext);
  const session = useQuery({
    queryKey: KEY,
    queryFn: async () => {
      const { data, response, error } = await api.GET("/api/v1/session");
      if (response.status === 401) return null;
      return call(Promise.resolve({ ...(data === undefined ? {} : { data }), error, response }));
    },
    staleTime: 60_000,
  });
  useEffect(() => {
    const forget = (): void => {
      if (queries.getQueryData(KEY) != null) signOut(queries, live);
    };
    whenSignedOut(forget);
    live.whenSignedOut = forget;
  }, [queries, live]);

  if (session.isPending) return null;
  if (session.isError) {
    return (
      <main className="card" style={{ maxWidth: 560, margin: "15vh auto" }}>
        <Problem error={session.error} retry={() => void session.refetch()} />
      </main>
    );
  }
  if (session.data === null) return <Login done={(found) => queries.setQueryData(KEY, found)} />;
  return <SessionContext value={session.data}>{children}</SessionContext>;
}

export function useLogOut() {
  const queries = useQueryClient();
  const live = useContext(LiveContext);
  return useMutation({
    mutationFn: () => call(api.DELETE("/api/v1/session")),
    onSuccess: () => signOut(queries, live),
  });
}

/** The login is shown, and whoever comes next does not see what the one before was shown. */
function signOut(queries: QueryClient, live: LiveHub): void {
  live.reset();
  queries.removeQueries({ predicate: (query) => query.queryKey[0] !== KEY[0] });
  queries.setQueryData(KEY, null);
}
