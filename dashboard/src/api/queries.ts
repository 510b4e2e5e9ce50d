/** How pages ask: what is kept, what is asked again, and lists that are read page by page. */

import { keepPreviousData, QueryClient, useInfiniteQuery, type QueryKey } from "@tanstack/react-query";

import { asProblem, type ProblemError } from "./problem";

declare module "@tanstack/react-query" {
  interface Register {
    defaultError: ProblemError;
  }
}

const MOST_TRIES = 3;

export function makeQueryClient(): QueryClient {
  return new QueryClient({
    defaultOptions: {
      queries: {
        staleTime: 2_000,
        refetchOnWindowFocus: true,
        // A refusal stays one however often it is asked for; a server that is away or busy may be back.
        retry: (failures, error) => asProblem(error).passes && failures < MOST_TRIES,
        retryDelay: (failures, error) => retryDelay(failures, asProblem(error).retryAfter),
      },
      mutations: { retry: false },
    },
  });
}

/** Milliseconds. What the server asked for wins. */
export function retryDelay(failures: number, retryAfter: number | null): number {
  if (retryAfter !== null) return Math.min(60, Math.max(1, retryAfter)) * 1000;
  return Math.min(10_000, 500 * 2 ** failures);
}

export interface Page<Item> {
  readonly items: readonly Item[];
  readonly next: string | null;
}

export interface Listing<Item> {
  readonly items: readonly Item[];
  /** Nothing was ever read: show a skeleton. */
  readonly isPending: boolean;
  /** Something newer is on its way; what is shown is of before. */
  readonly isFetching: boolean;
  readonly problem: ProblemError | null;
  readonly hasMore: boolean;
  readonly isLoadingMore: boolean;
  more(): void;
  refresh(): void;
}

export interface ListingOptions {
  /** Milliseconds between two looks; left out: only when it is asked for, or invalidated. */
  readonly refreshEach?: number;
  readonly enabled?: boolean;
}

/**
 * A list with keyset paging: `read` is given the cursor of the page it is to read, null for the first.
 * Rows that arrive meanwhile move nothing: a cursor names a row, not a number of rows.
 */
export function useListing<Item>(
  key: QueryKey,
  read: (cursor: string | null, signal: AbortSignal) => Promise<Page<Item>>,
  options: ListingOptions = {},
): Listing<Item> {
  const query = useInfiniteQuery({
    queryKey: key,
    queryFn: ({ pageParam, signal }) => read(pageParam, signal),
    initialPageParam: null as string | null,
    getNextPageParam: (last: Page<Item>) => last.next,
    placeholderData: keepPreviousData,
    refetchInterval: options.refreshEach ?? false,
    enabled: options.enabled ?? true,
  });
  return {
    items: query.data?.pages.flatMap((page) => page.items) ?? [],
    isPending: query.isPending,
    isFetching: query.isFetching,
    problem: query.error,
    hasMore: query.hasNextPage,
    isLoadingMore: query.isFetchingNextPage,
    more: () => void query.fetchNextPage(),
    // What is under way is as good, and would never end where each new reason to look took its place.
    refresh: () => void query.refetch({ cancelRefetch: false }),
  };
}
