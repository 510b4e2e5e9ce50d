import { useMutation, useQueryClient } from "@tanstack/react-query";

import { api, call, type wire } from "@/api";
import { useToasts } from "@/ui";

function useRefreshed(): () => Promise<void> {
  const queries = useQueryClient();
  return () => queries.invalidateQueries({ queryKey: ["schedules"] });
}

export function useRunNow() {
  const toasts = useToasts();
  const refreshed = useRefreshed();
  return useMutation({
    mutationFn: (name: string) => call(api.POST("/api/v1/schedules/{name}/run", { params: { path: { name } } })),
    onSuccess: ({ task }, name) => {
      toasts.say(`${name} runs now`, `It is task ${task}. Its next fires stay as they are.`);
      return refreshed();
    },
    onError: (error, name) => toasts.fail(`${name} was not run`, error),
  });
}

export function usePausing() {
  const toasts = useToasts();
  const refreshed = useRefreshed();
  return useMutation({
    mutationFn: ({ name, paused }: { readonly name: string; readonly paused: boolean }) => {
      const params = { params: { path: { name } } };
      return call(paused ? api.POST("/api/v1/schedules/{name}/pause", params) : api.POST("/api/v1/schedules/{name}/resume", params));
    },
    onSuccess: (schedule) => {
      if (schedule.paused) toasts.say(`${schedule.name} is paused`, "It does not fire until it is resumed.");
      else toasts.say(`${schedule.name} is resumed`, "It fires from now on; what fell into the pause never does.");
      return refreshed();
    },
    onError: (error, { name, paused }) => toasts.fail(`${name} was not ${paused ? "paused" : "resumed"}`, error),
  });
}

export function useCreate() {
  const toasts = useToasts();
  const refreshed = useRefreshed();
  return useMutation({
    mutationFn: (body: wire.NewScheduleRequest) => call(api.POST("/api/v1/schedules", { body })),
    onSuccess: (made) => {
      toasts.say(`${made.name} is made`, made.paused ? "It is paused." : `It fires: ${made.when}.`);
      return refreshed();
    },
  });
}

export function useChange(name: string) {
  const toasts = useToasts();
  const refreshed = useRefreshed();
  return useMutation({
    mutationFn: (body: wire.ScheduleChange) => call(api.PATCH("/api/v1/schedules/{name}", { params: { path: { name } }, body })),
    onSuccess: (changed) => {
      toasts.say(`${name} is changed`, `It fires: ${changed.when}.`);
      return refreshed();
    },
  });
}

/** `left` goes to another page: the one of a schedule that is gone would only say so. */
export function useRemove(left: () => void) {
  const toasts = useToasts();
  const queries = useQueryClient();
  return useMutation({
    mutationFn: (name: string) => call(api.DELETE("/api/v1/schedules/{name}", { params: { path: { name } } })),
    onSuccess: (_, name) => {
      left();
      toasts.say(`${name} is removed`, "Tasks that it has enqueued stay.");
      // Its own page is still there for a moment, and would ask for what is gone.
      return queries.invalidateQueries({ queryKey: ["schedules"], predicate: ({ queryKey }) => !queryKey.includes(name) });
    },
    onError: (error, name) => toasts.fail(`${name} was not removed`, error),
  });
}
