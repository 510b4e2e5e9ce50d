import { useMutation, useQueryClient } from "@tanstack/react-query";

import { api, call } from "@/api";
import { useToasts } from "@/ui";

export function useReset() {
  const queries = useQueryClient();
  const toasts = useToasts();
  return useMutation({
    mutationFn: (service: string) => call(api.POST("/api/v1/breakers/{service}/reset", { params: { path: { service } } })),
    onSuccess: ({ service }) => {
      toasts.say(`The breaker of ${service} is closed`, "Calls go through again; every process sees it within seconds.");
      return queries.invalidateQueries({ queryKey: ["breakers"] });
    },
    onError: (error, service) => toasts.fail(`The breaker of ${service} was not reset`, error),
  });
}

export function useOpen() {
  const queries = useQueryClient();
  const toasts = useToasts();
  return useMutation({
    mutationFn: ({ service, timeout }: { readonly service: string; readonly timeout: number | null }) =>
      call(api.POST("/api/v1/breakers/{service}/open", { params: { path: { service } }, body: { timeout } })),
    onSuccess: ({ service, forced }) => {
      toasts.say(`The breaker of ${service} is open`, forced ? "It stays open until it is reset." : "Then the service is probed.");
      return queries.invalidateQueries({ queryKey: ["breakers"] });
    },
  });
}
