/**
 * A job as groups of alike tasks: what the graph, the table and the Gantt view are made of.
 *
 * A small job is read whole and gathered here; of a large one the server gives groups, and members page by page.
 */

import type { wire } from "@/api";

export type Member = wire.NodeShown;

/** Tasks of one name that wait for the same groups in the same way. `task` is null where several names were put together. */
export type Group = wire.GroupShown;

export type GroupEdge = wire.GroupEdgeShown;

/** By ids of tasks. */
export type TaskEdge = wire.EdgeShown;

export interface Outline {
  readonly groups: readonly Group[];
  readonly edges: readonly GroupEdge[];
  /** Groups were put together so that there are not too many. */
  readonly merged: boolean;
  /** False: the job has more tasks than anybody looks at. */
  readonly complete: boolean;
  /** Every task of each group, where the job was read whole. */
  readonly members: ReadonlyMap<string, readonly Member[]> | null;
  /** Which task waits for which, where the job was read whole. */
  readonly links: readonly TaskEdge[];
}

export const NO_OUTLINE: Outline = { groups: [], edges: [], merged: false, complete: true, members: null, links: [] };

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
