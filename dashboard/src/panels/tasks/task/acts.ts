/** What can be done with one task, and what is said about it. */

import { useMutation, useQueryClient, type UseMutationResult } from "@tanstack/react-query";

import type { wire } from "@/api";
import { deciderOf } from "@/app/roles";
import { useMay, useMayControl } from "@/app/session";
import { useToasts } from "@/ui";

import { cancelTask, decideTask, deleteTask, resetBreaker, resumeQueue, retryTask } from "../requests";

export const ENDED: ReadonlySet<string> = new Set(["completed", "failed", "cancelled", "rejected"]);
/** What a person may run again. */
const AGAIN: ReadonlySet<string> = new Set(["completed", "failed", "cancelled"]);
export const HELD: ReadonlySet<string> = new Set(["claimed", "running", "paused", "cancelling"]);

export interface Allowed {
  readonly retry: boolean;
  readonly cancel: boolean;
  readonly clear: boolean;
  readonly remove: boolean;
  readonly edit: boolean;
  readonly decide: boolean;
}

/** By what state it is in, and whose it is. */
export function useAllowed(task: Pick<wire.TaskDetail, "state" | "owner" | "kind" | "approval"> | undefined): Allowed {
  const may = useMay();
  const mayControl = useMayControl();
  if (task === undefined) return { retry: false, cancel: false, clear: false, remove: false, edit: false, decide: false };
  const controls = mayControl(task.owner);
  const again = AGAIN.has(task.state);
  return {
    retry: controls && again,
    cancel: controls && !ENDED.has(task.state) && task.state !== "cancelling",
    clear: controls && again,
    remove: controls && !HELD.has(task.state),
    edit: controls && may({ role: "user", scope: "submit" }) && task.kind !== "session",
    decide: task.state === "pending_approval" && may({ role: deciderOf(task.approval?.role ?? null), scope: "control" }),
  };
}

export interface Act<Given = void> {
  readonly isPending: boolean;
  run(given: Given): void;
}

function useAct<Given, Answer>(
  act: (given: Given) => Promise<Answer>,
  done: (answer: Answer, given: Given) => string,
  failed: string,
): UseMutationResult<Answer, Error, Given> {
  const queries = useQueryClient();
  const toasts = useToasts();
  return useMutation<Answer, Error, Given>({
    mutationFn: act,
    onSuccess: (answer, given) => {
      toasts.say(done(answer, given));
      void queries.invalidateQueries({ queryKey: ["tasks"] });
      return queries.invalidateQueries({ queryKey: ["task"] });
    },
    onError: (error) => toasts.fail(failed, error),
  });
}

export function useRetry(id: number) {
  return useAct(
    () => retryTask(id),
    ({ ids }) => (ids.length === 1 ? "It runs again" : `It runs again, and ${ids.length - 1} more that had been cancelled because of it`),
    "It does not run again",
  );
}

export function useCancel(id: number) {
  return useAct(
    () => cancelTask(id),
    ({ answer }) => (answer === "cancelled" ? "It is cancelled" : "Its worker is told to stop it"),
    "It was not cancelled",
  );
}

export function useRemove(id: number) {
  return useAct(() => deleteTask(id), () => `Task ${id} is deleted`, "It was not deleted");
}

export function useDecide(id: number) {
  return useAct(
    ({ decision, note }: { readonly decision: "approve" | "reject"; readonly note: string }) => decideTask(id, decision, note),
    (_, { decision }) => (decision === "approve" ? "It is approved" : "It is rejected"),
    "Nothing was decided",
  );
}

/** What an explanation offers to do. */
export function useMend() {
  return useAct(
    ({ kind, subject }: wire.ActShown) => mend(kind, subject),
    (_, { kind, subject }) => MENDED[kind](subject),
    "It was not done",
  );
}

async function mend(kind: wire.ActShown["kind"], subject: string): Promise<unknown> {
  switch (kind) {
    case "resume_queue":
      return resumeQueue(subject);
    case "retry_task":
      return retryTask(Number(subject));
    case "approve_task":
      return decideTask(Number(subject), "approve", "");
    case "reset_breaker":
      return resetBreaker(subject);
    case "look_at_task":
      return undefined;
  }
}

const MENDED: Readonly<Record<wire.ActShown["kind"], (subject: string) => string>> = {
  resume_queue: (queue) => `${queue} goes on`,
  retry_task: (id) => `Task ${id} runs again`,
  approve_task: (id) => `Task ${id} is approved`,
  reset_breaker: (service) => `The breaker of ${service} is closed`,
  look_at_task: () => "",
};
