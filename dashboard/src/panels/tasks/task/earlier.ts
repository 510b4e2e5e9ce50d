/** A task comes with its last executions; those before them are read when somebody asks for them. */

import { useInfiniteQuery } from "@tanstack/react-query";
import { useEffect, useState } from "react";

import type { Page, ProblemError, wire } from "@/api";

import { getAttempts } from "../requests";

export interface Earlier {
  readonly hasMore: boolean;
  readonly isLoading: boolean;
  readonly problem: ProblemError | null;
  load(): void;
}

/** The task with all of its executions that were read so far, and the way to those before. */
export function useEarlier(id: number, task: wire.TaskDetail | undefined): [wire.TaskDetail | undefined, Earlier] {
  const [isAsked, setIsAsked] = useState(false);
  const query = useInfiniteQuery({
    queryKey: ["attempts", id],
    queryFn: ({ pageParam, signal }) => getAttempts(id, pageParam, signal),
    initialPageParam: null as string | null,
    getNextPageParam: (last: Page<wire.AttemptShown>) => last.next,
    enabled: isAsked,
    // What is over stays as it is; what is not comes with the task.
    staleTime: Number.POSITIVE_INFINITY,
  });
  const read = query.data?.pages.flatMap((page) => page.items) ?? [];
  const newest = Math.max(0, ...read.map((attempt) => attempt.claim_no));
  const oldest = task?.attempts[0]?.claim_no ?? 0;
  // So many came meanwhile that some are in neither of the two.
  const hasGap = read.length > 0 && oldest > newest && !query.isFetching;
  const { refetch } = query;
  useEffect(() => {
    if (hasGap) void refetch();
  }, [hasGap, refetch]);
  const hasMore = query.data === undefined ? (task?.more_attempts ?? false) : query.hasNextPage;
  const whole = task === undefined || read.length === 0 ? task : { ...task, attempts: joined(read, task.attempts), more_attempts: hasMore };
  const load = (): void => {
    if (isAsked) void (query.data === undefined ? query.refetch() : query.fetchNextPage());
    else setIsAsked(true);
  };
  return [whole, { hasMore, isLoading: isAsked && query.isFetching, problem: query.error, load }];
}

/** By claim, each once; of two that are the same, the later word. */
export function joined(earlier: readonly wire.AttemptShown[], last: readonly wire.AttemptShown[]): wire.AttemptShown[] {
  const found = new Map([...earlier, ...last].map((attempt) => [attempt.claim_no, attempt]));
  return [...found.values()].sort((one, other) => one.claim_no - other.claim_no);
}
