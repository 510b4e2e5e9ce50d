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
      const found = await call(Promise.resolve({ ...(data === undefined ? {} : { data }), error, response }));
      const before = queries.getQueryData<Session | null>(KEY);
      // Another tab has logged out and in: the cookie is theirs by now, and what is kept here is not.
      if (before != null && identityOf(before) !== identityOf(found)) forgetAll(queries, live);
      return found;
    },
    staleTime: 60_000,
    // Who comes back to this tab may have been somebody else in the one before.
    refetchOnWindowFocus: "always",
  });
  useEffect(() => {
    const forget = (): void => {
      if (queries.getQueryData(KEY) != null) signOut(queries, live);
    };
    whenSignedOut(forget);
    live.whenSignedOut = forget;
  }, [queries, live]);

  if (session.isPending) return null;
  // Later it may fail to be asked for again: what is shown stays, and says itself what it cannot do.
  if (session.isLoadingError) {
    return (
      <main className="card" style={{ maxWidth: 560, margin: "15vh auto" }}>
        <Problem error={session.error} retry={() => void session.refetch()} />
      </main>
    );
  }
  if (session.data === null) return <Login done={(found) => queries.setQueryData(KEY, found)} />;
  // Somebody else begins anew: also what somebody had opened, chosen or written is theirs.
  return (
    <SessionContext key={identityOf(session.data)} value={session.data}>
      {children}
    </SessionContext>
  );
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
  forgetAll(queries, live);
  queries.setQueryData(KEY, null);
}

function forgetAll(queries: QueryClient, live: LiveHub): void {
  live.reset();
  queries.removeQueries({ predicate: (query) => query.queryKey[0] !== KEY[0] });
}

function identityOf({ name, role }: Session): string {
  return JSON.stringify([name, role]);
}
