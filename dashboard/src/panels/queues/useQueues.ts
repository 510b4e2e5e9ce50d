import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useCallback, useEffect, useState } from "react";

import { api, call, type wire } from "@/api";
import { useLiveMessages, type OverviewMessage } from "@/live";
import { useToasts } from "@/ui";

import { isOutdated, merged, type Queue } from "./figures";

const KEY = ["queues"] as const;
const EACH = 5000;

export interface Queues {
  readonly queues: readonly Queue[];
  readonly isPending: boolean;
  readonly error: Error | null;
  /** When the depths were last heard of, in milliseconds since the epoch. */
  readonly seenAt: number;
  retry(): void;
}

/** Every queue. Limits and rates are asked for, depths come by themselves in between. */
export function useQueues(): Queues {
  const queries = useQueryClient();
  const [heard, setHeard] = useState<{ readonly at: number; readonly queues: OverviewMessage["queues"] } | null>(null);
  const take = useCallback((messages: readonly OverviewMessage[]) => {
    const last = messages.at(-1);
    if (last !== undefined) setHeard({ at: Date.now(), queues: last.queues });
  }, []);
  useLiveMessages({ kind: "overview" }, take);
  const listed = useQuery({
    queryKey: KEY,
    queryFn: ({ signal }) => call(api.GET("/api/v1/queues", { signal })),
    refetchInterval: EACH,
  });
  // Queues of the code that have nothing to do are on no list of the ledger.
  const registry = useQuery({
    queryKey: ["registry"],
    queryFn: ({ signal }) => call(api.GET("/api/v1/registry", { signal })),
    staleTime: 60_000,
  });
  const isNewer = heard !== null && heard.at > listed.dataUpdatedAt;
  const mustAsk = isNewer && listed.data !== undefined && isOutdated(listed.data, heard.queues);
  useEffect(() => {
    if (mustAsk) void queries.invalidateQueries({ queryKey: KEY });
  }, [mustAsk, queries]);
  return {
    queues: merged(listed.data ?? [], isNewer ? heard.queues : null, registry.data?.queues ?? []),
    isPending: listed.isPending,
    error: listed.error,
    seenAt: Math.max(heard?.at ?? 0, listed.dataUpdatedAt),
    retry: () => void listed.refetch(),
  };
}

/** Puts the answer of an act where the list is, so that it is seen at once, and has the list read again. */
function useShown(): (queue: wire.QueueShown) => Promise<void> {
  const queries = useQueryClient();
  return (queue) => {
    queries.setQueryData<wire.QueueShown[]>(KEY, (before) => [...(before ?? []).filter((each) => each.name !== queue.name), queue]);
    return queries.invalidateQueries({ queryKey: KEY });
  };
}

export function usePausing() {
  const toasts = useToasts();
  const shown = useShown();
  return useMutation({
    mutationFn: ({ name, paused }: { readonly name: string; readonly paused: boolean }) => {
      const params = { params: { path: { name } } };
      return call(paused ? api.POST("/api/v1/queues/{name}/pause", params) : api.POST("/api/v1/queues/{name}/resume", params));
    },
    onSuccess: (queue) => {
      if (queue.paused) toasts.say(`${queue.name} is paused`, "No worker starts its tasks; what runs goes on.");
      else toasts.say(`${queue.name} is resumed`, "Workers start its tasks again.");
      return shown(queue);
    },
    onError: (error, { name, paused }) => toasts.fail(`${name} was not ${paused ? "paused" : "resumed"}`, error),
  });
}

export function useLimiting(name: string) {
  const toasts = useToasts();
  const shown = useShown();
  return useMutation({
    mutationFn: (n: number | null) => call(api.PUT("/api/v1/queues/{name}/limit", { params: { path: { name } }, body: { n } })),
    onSuccess: (queue) => {
      const { limit } = queue;
      toasts.say(limit === null ? `${name} has no limit` : `${name} runs at most ${limit.toLocaleString()} at once`);
      return shown(queue);
    },
  });
}

export function useRating(name: string) {
  const toasts = useToasts();
  const shown = useShown();
  return useMutation({
    mutationFn: (body: wire.QueueRate) => call(api.PUT("/api/v1/queues/{name}/rate", { params: { path: { name } }, body })),
    onSuccess: (queue) => {
      toasts.say(queue.rate === null ? `${name} has no rate` : `The rate of ${name} is set`);
      return shown(queue);
    },
  });
}
