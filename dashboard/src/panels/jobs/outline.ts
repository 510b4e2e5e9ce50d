/**
 * A job as groups of alike tasks: what the graph, the table and the Gantt view are made of.
 *
 * A small job is read whole and gathered here; of a large one the server gives groups, and members page by page.
 */

import type { wire } from "@/api";

import type { States } from "./states";

export type Member = wire.NodeShown;

/** Seconds of executions that have ended; null where none has. */
export interface Took {
  readonly n: number;
  readonly mean: number | null;
  readonly max: number | null;
}

/** Tasks of one name that wait for the same groups in the same way. */
export interface Group {
  readonly id: string;
  /** null where tasks of several names were put together. */
  readonly task: string | null;
  readonly label: string | null;
  readonly level: number;
  readonly count: number;
  readonly states: States;
  readonly started_at: string | null;
  readonly finished_at: string | null;
  readonly took: Took;
  /** The id of one member: the one, where there is one. */
  readonly first: number;
  /** The id of one that failed; `error` is of that one. */
  readonly failed: number | null;
  readonly error: string | null;
}

export interface GroupEdge {
  readonly group: string;
  readonly upstream: string;
  readonly kind: wire.EdgeKind;
  readonly count: number;
}

/** By ids of tasks. */
export type TaskEdge = wire.EdgeShown;

export interface Outline {
  readonly groups: readonly Group[];
  readonly edges: readonly GroupEdge[];
  /** Groups were put together so that there are not too many. */
  readonly merged: boolean;
  /** Every task of each group, where the job was read whole. */
  readonly members: ReadonlyMap<string, readonly Member[]> | null;
  /** Which task waits for which, where the job was read whole. */
  readonly links: readonly TaskEdge[];
}

export const NO_OUTLINE: Outline = { groups: [], edges: [], merged: false, members: null, links: [] };

/** How a group is called: by its label where all have the same, else by what runs. */
export function groupName(group: Pick<Group, "label" | "task">): string {
  return group.label ?? (group.task === null ? "several tasks" : shortTask(group.task));
}

/** What it stands for, whole: for who points at it. */
export function groupTask(group: Pick<Group, "task">): string {
  return group.task ?? "tasks of several names";
}

/** tasks.mail.send → send: in a job most names begin alike, and the end says which it is. */
export function shortTask(task: string): string {
  return task.slice(task.lastIndexOf(".") + 1) || task;
}
