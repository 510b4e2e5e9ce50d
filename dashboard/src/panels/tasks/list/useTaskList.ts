/** Tasks page by page. Rows stay where they are; they are renewed in their places, and what arrives is counted. */

import { keepPreviousData, useInfiniteQuery, useQuery, useQueryClient, type InfiniteData } from "@tanstack/react-query";
import { useCallback, useEffect, useMemo, useRef } from "react";

import type { ProblemError, wire } from "@/api";
import { useLiveMessages } from "@/live";

import { LIST_PAGE, listByIds, listTasks, MOST_IDS, type TaskPage } from "../requests";
import type { Filters } from "../search/query";
import { arrivalsOf, NONE, once, renewed, type Arrivals } from "./arrivals";

export interface TaskList {
  readonly rows: readonly wire.TaskSummary[];
  readonly isPending: boolean;
  readonly isFetching: boolean;
  readonly problem: ProblemError | null;
  readonly hasMore: boolean;
  readonly isLoadingMore: boolean;
  /** How far the last page looked, where it did not come to the end. */
  readonly searched: wire.SearchedShown | null;
  readonly arrivals: Arrivals;
  more(): void;
  refresh(): void;
  /** Read the list from its top. */
  showArrivals(): void;
}

const LIVE_STATES: ReadonlySet<string> = new Set([
  ...["pending", "pending_approval", "blocked", "claimed"],
  ...["running", "paused", "cancelling", "lost"],
]);
/** A look again: at most so often when something is said to have changed, and at least so often when nothing is. */
const SOONEST = 1500;
const LATEST = 10_000;
/** A page of a search ends after a moment of the server's. For so long the next one is asked for without being told. */
const LOOKING_ON = 5000;

type Pages = InfiniteData<TaskPage, string | null>;
type Found = ReadonlyMap<number, wire.TaskSummary>;

export function useTaskList(filters: Filters, enabled: boolean): TaskList {
  const queries = useQueryClient();
  const key = useMemo(() => ["tasks", "list", filters] as const, [filters]);
  const query = useInfiniteQuery({
    queryKey: key,
    queryFn: ({ pageParam, signal }) => listTasks(filters, pageParam, signal),
    initialPageParam: null as string | null,
    getNextPageParam: (last: TaskPage) => last.next,
    placeholderData: keepPreviousData,
    // What is shown is read once more only when somebody asks for it, or has acted.
    staleTime: Number.POSITIVE_INFINITY,
    refetchOnWindowFocus: false,
    refetchOnReconnect: false,
    enabled,
  });
  const rows = useMemo(() => once(query.data?.pages.flatMap((page) => page.items) ?? []), [query.data]);
  const isShown = enabled && query.data !== undefined && !query.isPlaceholderData;

  // Asked by hand alone: when something is said to have changed, now and then, and when the page is looked at again.
  const peek = useQuery({
    queryKey: ["tasks", "peek", filters],
    queryFn: async ({ signal }) => {
      for (;;) {
        const shown = queries.getQueryState<Pages>(key);
        const rows = shown?.data?.pages.flatMap((page) => page.items) ?? [];
        const { page, found } = await look(filters, rows, signal);
        // After an act the list was read anew meanwhile: what was seen before may be older than what it says.
        if (queries.getQueryState(key)?.dataUpdateCount !== shown?.dataUpdateCount) continue;
        queries.setQueryData<Pages>(key, (before) => before && { ...before, pages: before.pages.map((each) => withNewer(each, found)) });
        return page;
      }
    },
    enabled: false,
  });
  const { refetch: lookAgain } = peek;
  const again = useThrottled(
    useCallback(() => {
      // A look that is under way is waited for: with many pages, or a slow server, none would ever end.
      if (isShown && !document.hidden) void lookAgain({ cancelRefetch: false });
    }, [isShown, lookAgain]),
  );
  // Figures of the whole ledger: when they are others than before, something was created or has ended.
  const figures = useRef("");
  useLiveMessages(enabled ? { kind: "system" } : null, (messages) => {
    const said = JSON.stringify(messages.at(-1)?.tasks);
    if (said !== figures.current) again();
    figures.current = said;
  });
  const isOld = Date.now() - query.dataUpdatedAt > SOONEST;
  useEffect(() => {
    if (!isShown) return undefined;
    // It was read before the page was left, and is shown as it was.
    if (isOld) again();
    const timer = window.setInterval(again, LATEST);
    document.addEventListener("visibilitychange", again);
    return () => {
      window.clearInterval(timer);
      document.removeEventListener("visibilitychange", again);
    };
  }, [isShown, again]);

  // What was seen before the list was read last says nothing about it: rows in it may be gone.
  const top = isShown && peek.dataUpdatedAt >= query.dataUpdatedAt ? peek.data : undefined;
  const arrivals = useMemo(() => {
    if (top === undefined) return NONE;
    const shown = new Set(rows.map((row) => row.id));
    const ids = top.items.map((row) => row.id);
    return arrivalsOf({ shown, isWhole: !query.hasNextPage }, { ids, hasMore: top.next !== null });
  }, [top, rows, query.hasNextPage]);

  const showArrivals = useCallback(() => {
    if (top === undefined) return;
    queries.setQueryData<Pages>(key, { pages: [top], pageParams: [null] });
  }, [queries, key, top]);

  // Where nothing is shown nothing can be moved.
  const isEmpty = isShown && rows.length === 0 && arrivals.n > 0;
  useEffect(() => {
    if (isEmpty) showArrivals();
  }, [isEmpty, showArrivals]);

  const last = query.data?.pages.at(-1)?.searched;
  const searched = last != null && !last.complete ? last : null;
  const begun = useRef<{ of: unknown; at: number }>({ of: null, at: 0 });
  const { hasNextPage, isFetching, fetchNextPage } = query;
  const looksOn = isShown && searched !== null && hasNextPage && rows.length < LIST_PAGE;
  useEffect(() => {
    if (begun.current.of !== key) begun.current = { of: key, at: Date.now() };
    if (looksOn && !isFetching && Date.now() < begun.current.at + LOOKING_ON) void fetchNextPage();
  }, [key, looksOn, isFetching, fetchNextPage]);

  return {
    rows,
    isPending: query.isPending && enabled,
    isFetching: query.isFetching,
    problem: query.error,
    hasMore: query.hasNextPage,
    isLoadingMore: query.isFetchingNextPage,
    searched,
    arrivals,
    more: () => void query.fetchNextPage().then(again),
    refresh: () => void query.refetch(),
    showArrivals,
  };
}

/** The top of the list, and what became of rows that are shown and had not ended. */
async function look(
  filters: Filters,
  shown: readonly wire.TaskSummary[],
  signal: AbortSignal,
): Promise<{ readonly page: TaskPage; readonly found: Found }> {
  const page = await listTasks(filters, null, signal, LIST_PAGE);
  const found = new Map(page.items.map((row) => [row.id, row]));
  const others = shown.filter((row) => LIVE_STATES.has(row.state) && !found.has(row.id)).map((row) => row.id);
  if (others.length > 0) {
    const { items } = await listByIds(others.slice(0, MOST_IDS), signal);
    for (const row of items) found.set(row.id, row);
  }
  return { page, found };
}

function withNewer(page: TaskPage, found: Found): TaskPage {
  const items = renewed(page.items, found);
  return items === page.items ? page : { ...page, items };
}

/** At once, and then at most once in a while; the last call is never lost. */
function useThrottled(act: () => void): () => void {
  const latest = useRef(act);
  const state = useRef({ at: Number.NEGATIVE_INFINITY, timer: 0 });
  useEffect(() => {
    latest.current = act;
  });
  useEffect(() => {
    const { current } = state;
    return () => {
      window.clearTimeout(current.timer);
      current.timer = 0;
    };
  }, []);
  return useCallback(() => {
    const { current } = state;
    if (current.timer !== 0) return;
    const wait = Math.max(0, current.at + SOONEST - Date.now());
    current.timer = window.setTimeout(() => {
      current.timer = 0;
      current.at = Date.now();
      latest.current();
    }, wait);
  }, []);
}
