/**
 * A job as groups of alike tasks: what the graph, the table and the Gantt view are made of.
 *
 * A small job is read whole and gathered here; of a large one the server gives groups, and members page by page.
 */

import type { wire } from "@/api";

import type { States } from "./states";

export type Member = wire.NodeShown;

export interface Took {
  readonly n: number;
  readonly mean: number;
  readonly max: number;
}

/** Tasks of one name that wait for the same groups in the same way. */
export interface Group {
  readonly id: string;
  readonly task: string;
  readonly label: string | null;
  readonly level: number;
  readonly count: number;
  readonly states: States;
  readonly critical: boolean;
  readonly started_at: string | null;
  readonly finished_at: string | null;
  readonly took: Took | null;
  /** The id of one member: the one, where there is one. */
  readonly first: number;
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
export function groupName(group: Group): string {
  return group.label ?? shortTask(group.task);
}

/** tasks.mail.send → send: in a job most names begin alike, and the end says which it is. */
export function shortTask(task: string): string {
  return task.slice(task.lastIndexOf(".") + 1) || task;
}
