/** Rows of the Gantt view and the bars in them. Pure. */

import { toneOf, type Tone } from "@/ui";

import { groupName, shortTask, type Group } from "../outline";
import type { PagedList } from "../paging";
import type { Timed } from "../reading";
import { hasEnded, leadingTone } from "../states";

export type GanttRow =
  | { readonly kind: "group"; readonly key: string; readonly group: Group; readonly isOpen: boolean }
  | { readonly kind: "single"; readonly key: string; readonly group: Group }
  | { readonly kind: "task"; readonly key: string; readonly group: Group; readonly timed: Timed; readonly isInGroup: boolean }
  | { readonly kind: "more"; readonly key: string; readonly group: Group; readonly list: PagedList<Timed> };

/** By level, then as the server has them; members below their group, as far as they were read. */
export function ganttRows(
  groups: readonly Group[],
  unfolded: ReadonlySet<string>,
  listOf: (group: string) => PagedList<Timed>,
): readonly GanttRow[] {
  const sorted = [...groups].sort((one, other) => one.level - other.level);
  return sorted.flatMap((group): GanttRow[] => {
    const list = listOf(group.id);
    if (group.count === 1) {
      const timed = list.items[0];
      return timed === undefined
        ? [{ kind: "single", key: group.id, group }]
        : [{ kind: "task", key: `#${timed.id}`, group, timed, isInGroup: false }];
    }
    const isOpen = unfolded.has(group.id);
    const rows: GanttRow[] = [{ kind: "group", key: group.id, group, isOpen }];
    if (!isOpen) return rows;
    for (const timed of list.items) rows.push({ kind: "task", key: `#${timed.id}`, group, timed, isInGroup: true });
    if (list.hasMore || list.isReading || list.problem !== null) {
      rows.push({ kind: "more", key: `${group.id} more`, group, list });
    }
    return rows;
  });
}

/** Tasks of a job that was read whole, by group. */
export function listsOf(all: readonly Timed[]): (group: string) => PagedList<Timed> {
  const lists = new Map<string, Timed[]>();
  for (const timed of all) {
    const list = lists.get(timed.group);
    if (list === undefined) lists.set(timed.group, [timed]);
    else list.push(timed);
  }
  return (group) => ({ items: lists.get(group) ?? [], hasMore: false, isReading: false, problem: null });
}

export interface GanttBar {
  readonly from: number;
  readonly to: number;
  readonly tone: Tone;
  /** "wait": from its creation to its start. "sum": of a whole group. */
  readonly kind: "run" | "wait" | "sum";
  readonly state: string;
  /** Which execution it was, from 1; 0 for what is none. */
  readonly attempt: number;
}

/** Waiting, then every execution. What runs goes on to now. */
export function barsOfTask(timed: Timed, now: number): readonly GanttBar[] {
  const bars: GanttBar[] = [];
  const ran = timed.attempts.filter((attempt) => attempt.started_at !== null);
  for (const [at, attempt] of ran.entries()) {
    const from = Date.parse(attempt.started_at ?? "");
    const to = attempt.finished_at === null ? (attempt.state === "running" ? now : from) : Date.parse(attempt.finished_at);
    bars.push({ from, to: Math.max(from, to), tone: toneOf(attempt.state), kind: "run", state: attempt.state, attempt: at + 1 });
  }
  if (ran.length === 0 && timed.started_at !== null) bars.push(plainBar(timed.started_at, timed.finished_at, timed.state, now));
  const created = Date.parse(timed.created_at);
  const first = bars[0]?.from ?? (hasEnded(timed.state) ? Date.parse(timed.finished_at ?? timed.created_at) : now);
  if (first > created) {
    bars.unshift({ from: created, to: first, tone: "waiting", kind: "wait", state: "waiting", attempt: 0 });
  }
  return bars;
}

/** One bar from the first start to the last end. */
export function barsOfGroup(group: Group, now: number): readonly GanttBar[] {
  if (group.started_at === null) return [];
  const from = Date.parse(group.started_at);
  const to = group.finished_at === null ? now : Date.parse(group.finished_at);
  const kind = group.count === 1 ? "run" : "sum";
  return [{ from, to: Math.max(from, to), tone: leadingTone(group.states), kind, state: "", attempt: 0 }];
}

function plainBar(started: string, finished: string | null, state: string, now: number): GanttBar {
  const from = Date.parse(started);
  const to = finished === null ? (hasEnded(state) ? from : now) : Date.parse(finished);
  return { from, to: Math.max(from, to), tone: toneOf(state), kind: "run", state, attempt: 1 };
}

export function rowName(row: GanttRow): string {
  switch (row.kind) {
    case "task":
      return row.isInGroup && row.timed.name === row.timed.task
        ? `#${row.timed.id}`
        : row.timed.name === row.timed.task
          ? shortTask(row.timed.task)
          : row.timed.name;
    default:
      return groupName(row.group);
  }
}

/** From the first thing that was to the last: what the axis is about. */
export function extentOf(
  job: { readonly created_at: string; readonly started_at: string | null; readonly completed_at: string | null },
  groups: readonly Group[],
  now: number,
): { readonly since: number; readonly until: number } {
  const since = Date.parse(job.started_at ?? job.created_at);
  let until = job.completed_at === null ? now : Date.parse(job.completed_at);
  let first = since;
  for (const group of groups) {
    if (group.started_at !== null) first = Math.min(first, Date.parse(group.started_at));
    if (group.finished_at !== null) until = Math.max(until, Date.parse(group.finished_at));
  }
  return { since: first, until: Math.max(first, until) };
}
