/** What this panel asks the server; nothing else in it knows the wire. */

import { api, call, type wire } from "@/api";

import { gathered } from "./grouping";
import type { Member, Outline } from "./outline";

/** A job of at most so many tasks is read whole without asking how it is made. */
const SMALL = 300;
/** A larger one is, up to here, where it has not too many edges: they may be as many as the square of its tasks. */
const MOST_NODES = 5000;
const MOST_EDGES = 20_000;
export const PAGE = 500;

export type Groups = wire.GroupsShown;

/** A task as the Gantt view needs it: with every execution. */
export type Timed = wire.GanttRow;

export interface PageOf<Item> {
  readonly items: readonly Item[];
  readonly next: string | null;
}

export function readJob(id: number, signal: AbortSignal): Promise<wire.JobDetail> {
  return call(api.GET("/api/v1/jobs/{id}", { signal, params: { path: { id } } }));
}

export function readGroups(id: number, signal: AbortSignal): Promise<Groups> {
  return call(api.GET("/api/v1/jobs/{id}/groups", { signal, params: { path: { id } } }));
}

function readGraph(id: number, signal: AbortSignal): Promise<wire.GraphShown> {
  return call(api.GET("/api/v1/jobs/{id}/graph", { signal, params: { path: { id }, query: { limit: MOST_NODES } } }));
}

export interface ReadOutline {
  readonly job: wire.JobShown;
  readonly outline: Outline;
  /** Milliseconds that the server and the way took. */
  readonly took: number;
}

/** A job as groups: all of a small one, what is alike put together of a large one. `whole`: how it was read before. */
export async function readOutline(
  id: number,
  total: number,
  whole: boolean | null,
  signal: AbortSignal,
  clock: () => number = () => performance.now(),
): Promise<ReadOutline> {
  const began = clock();
  if (whole ?? total <= SMALL) {
    const graph = await readGraph(id, signal);
    // More were added meanwhile than are read at once.
    if (graph.complete) return { job: graph.job, outline: gathered(graph), took: clock() - began };
  }
  const groups = await readGroups(id, signal);
  const edges = groups.edges.reduce((sum, edge) => sum + edge.count, 0);
  if (whole === null && groups.job.total <= MOST_NODES && edges <= MOST_EDGES) {
    const graph = await readGraph(id, signal);
    if (graph.complete) return { job: graph.job, outline: gathered(graph), took: clock() - began };
  }
  const { merged, complete } = groups;
  const outline: Outline = { groups: groups.groups, edges: groups.edges, merged, complete, members: null, links: [] };
  return { job: groups.job, outline, took: clock() - began };
}

export async function readMembers(
  id: number,
  group: string,
  cursor: string | null,
  signal: AbortSignal,
): Promise<PageOf<Member>> {
  const query = { limit: PAGE, ...(cursor === null ? {} : { cursor }) };
  const page = await call(
    api.GET("/api/v1/jobs/{id}/groups/{group}/tasks", { signal, params: { path: { id, group }, query } }),
  );
  return { items: page.items, next: page.next ?? null };
}

/** Of one group, or of all. */
export async function readTimed(
  id: number,
  group: string | null,
  cursor: string | null,
  signal: AbortSignal,
): Promise<PageOf<Timed>> {
  const query = { limit: PAGE, ...(group === null ? {} : { group }), ...(cursor === null ? {} : { cursor }) };
  const page = await call(api.GET("/api/v1/jobs/{id}/gantt", { signal, params: { path: { id }, query } }));
  return { items: page.items, next: page.next ?? null };
}
