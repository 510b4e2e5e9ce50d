/** A job and what it is made of, kept up to date for as long as somebody looks. */

import { useQuery, useQueryClient, type QueryClient } from "@tanstack/react-query";
import { useCallback, useEffect, useRef } from "react";

import type { Page, ProblemError, wire } from "@/api";
import { useLiveMessages, type JobMessage } from "@/live";

import { pauseAfter, pollAfter } from "./pace";
import { readJob, readOutline, type ReadOutline } from "./reading";

export function isOver(job: Pick<wire.JobShown, "state">): boolean {
  return job.state === "completed" || job.state === "failed" || job.state === "cancelled";
}

/** What a message says of a job, put into what is known of it. Never back in time: an answer may be newer. */
export function patched(job: KnownJob, { status, data }: JobMessage): KnownJob {
  const ended = data.completed + data.failed + data.cancelled;
  const isOlder = data.total < job.total || (ended < job.completed + job.failed + job.cancelled && isOver(job));
  if (isOlder) return job;
  const open = Math.max(0, data.total - ended);
  return {
    ...job,
    state: status,
    total: data.total,
    completed: data.completed,
    failed: data.failed,
    cancelled: data.cancelled,
    open,
    running: Math.min(job.running, open),
  };
}

/** A job as its own answer has it, or as lists and graphs do: without what its end enqueues. */
export type KnownJob = wire.JobShown & Partial<Pick<wire.JobDetail, "hooks">>;

export interface FollowedJob {
  readonly job: KnownJob | undefined;
  readonly problem: ProblemError | null;
  refresh(): void;
}

/** `changed` is called when the server said that something did. */
export function useJob(id: number, changed: () => void): FollowedJob {
  const queries = useQueryClient();
  const query = useQuery<KnownJob>({
    queryKey: ["job", id],
    queryFn: ({ signal }) => readJob(id, signal),
    // Who comes from the list sees at once what it said, and its tasks are asked for without waiting.
    placeholderData: () => listed(queries, id),
    refetchInterval: (found) => (found.state.data !== undefined && isOver(found.state.data) ? false : 5000),
  });
  useLiveMessages(
    { kind: "job", id },
    useCallback(
      (messages: readonly JobMessage[]) => {
        const last = messages.at(-1);
        if (last === undefined) return;
        const before = queries.getQueryData<KnownJob>(["job", id]);
        if (before === undefined) return;
        const after = patched(before, last);
        if (after === before) {
          // It is old, or begins another run of what is over here: its counts are the same, and nobody asks by himself.
          if (isOver(before)) void queries.invalidateQueries({ queryKey: ["job", id], exact: true }, { cancelRefetch: false });
          return;
        }
        queries.setQueryData(["job", id], after);
        // Its end has times and reasons that a message does not carry.
        if (after.state !== before.state) void queries.invalidateQueries({ queryKey: ["job", id], exact: true });
        changed();
      },
      [queries, id, changed],
    ),
  );
  return { job: query.data, problem: query.error, refresh: () => void query.refetch() };
}

export interface FollowedOutline {
  readonly read: ReadOutline | undefined;
  readonly problem: ProblemError | null;
  /** Something has changed: look again as soon as the pace allows. */
  changed(): void;
  refresh(): void;
}

/** `total` is null until the job itself is known. */
export function useOutline(id: number, total: number | null, live: boolean): FollowedOutline {
  const queries = useQueryClient();
  const timer = useRef<number | null>(null);
  const key = ["job", id, "outline"] as const;
  const query = useQuery({
    queryKey: key,
    queryFn: async ({ signal }) => {
      const before = queries.getQueryData<ReadOutline>(key);
      const whole = before === undefined ? null : before.outline.members !== null;
      const read = await readOutline(id, total ?? 0, whole, signal);
      rememberJob(queries, id, read.job);
      return read;
    },
    enabled: total !== null,
    // Thousands of nodes would be compared one by one; the scene finds out itself whether its shape has changed.
    structuralSharing: false,
    refetchInterval: (found) => (live ? pollAfter(found.state.data?.took ?? 0) : false),
  });
  const took = query.data?.took ?? 0;
  const { refetch } = query;
  const changed = useCallback(() => {
    timer.current ??= window.setTimeout(() => {
      timer.current = null;
      void refetch({ cancelRefetch: false });
    }, pauseAfter(took));
  }, [refetch, took]);
  useEffect(
    () => () => {
      if (timer.current !== null) window.clearTimeout(timer.current);
      timer.current = null;
    },
    [id],
  );
  return { read: query.data, problem: query.error, changed, refresh: () => void refetch() };
}

/** What a list of jobs that is known says of one. */
export function listed(queries: QueryClient, id: number): wire.JobShown | undefined {
  for (const [, found] of queries.getQueriesData<{ readonly pages: readonly Page<wire.JobShown>[] }>({ queryKey: ["jobs"] })) {
    for (const page of found?.pages ?? []) {
      const job = page.items.find((item) => item.id === id);
      if (job !== undefined) return job;
    }
  }
  return undefined;
}

function rememberJob(queries: QueryClient, id: number, job: wire.JobShown): void {
  const before = queries.getQueryData<KnownJob>(["job", id]);
  queries.setQueryData<KnownJob>(["job", id], before === undefined ? job : { ...before, ...job });
  // What its end enqueued only its own answer says.
  const hasChanged = before !== undefined && (before.state !== job.state || before.run_no !== job.run_no);
  if (hasChanged) void queries.invalidateQueries({ queryKey: ["job", id], exact: true });
}
