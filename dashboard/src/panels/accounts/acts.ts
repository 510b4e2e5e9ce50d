import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";

import { api, call, type wire } from "@/api";
import { useToasts } from "@/ui";

export type Kind = "api" | "session";

/** Whose tokens: of somebody, of everyone (for admins), or one's own. */
export type Whose = { readonly user: string } | { readonly everyone: true } | null;

export function useTokens(whose: Whose, kind: Kind | null) {
  const filters = { ...whose, ...(kind === null ? {} : { kind }) };
  return useQuery({
    queryKey: ["tokens", filters],
    queryFn: ({ signal }) => call(api.GET("/api/v1/tokens", { signal, params: { query: filters } })),
    refetchInterval: 15_000,
  });
}

export function useUsers() {
  return useQuery({ queryKey: ["users"], queryFn: ({ signal }) => call(api.GET("/api/v1/users", { signal })) });
}

export function useUser(name: string) {
  return useQuery({
    queryKey: ["users", name],
    queryFn: ({ signal }) => call(api.GET("/api/v1/users/{name}", { signal, params: { path: { name } } })),
  });
}

export function useAddUser() {
  const queries = useQueryClient();
  const toasts = useToasts();
  return useMutation({
    mutationFn: (body: wire.AddUser) => call(api.POST("/api/v1/users", { body })),
    onSuccess: (user) => {
      toasts.say(`${user.name} is let in as ${user.role}`);
      return queries.invalidateQueries({ queryKey: ["users"] });
    },
  });
}

export function useChangeUser(name: string) {
  const queries = useQueryClient();
  const toasts = useToasts();
  return useMutation({
    mutationFn: ({ change }: { readonly change: wire.ChangeUser; readonly done: string }) =>
      call(api.PATCH("/api/v1/users/{name}", { params: { path: { name } }, body: change })),
    onSuccess: (user, { done }) => {
      toasts.say(done);
      queries.setQueryData(["users", name], user);
      // A new password and disabling end sessions, which are tokens.
      return Promise.all([
        queries.invalidateQueries({ queryKey: ["users"] }),
        queries.invalidateQueries({ queryKey: ["tokens"] }),
      ]);
    },
  });
}

export function useCreateToken(user: string | null) {
  const queries = useQueryClient();
  return useMutation({
    mutationFn: (body: wire.CreateToken) =>
      call(api.POST("/api/v1/tokens", { params: { query: user === null ? {} : { user } }, body })),
    onSuccess: () => queries.invalidateQueries({ queryKey: ["tokens"] }),
    // Its answer holds the secret: it is not to stay in memory longer than the page shows it.
    gcTime: 0,
  });
}

export function useRevoke() {
  const queries = useQueryClient();
  const toasts = useToasts();
  return useMutation({
    mutationFn: (token: wire.TokenAnswer) => call(api.DELETE("/api/v1/tokens/{id}", { params: { path: { id: token.id } } })),
    onSuccess: (_, token) => {
      toasts.say(token.kind === "session" ? "The login is ended" : `The token ${token.label || token.hint} is revoked`);
      return queries.invalidateQueries({ queryKey: ["tokens"] });
    },
    onError: (error) => toasts.fail("It was not revoked", error),
  });
}
