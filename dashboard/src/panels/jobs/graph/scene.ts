/** From a job and what of it is unfolded to boxes and edges. Says nothing of places: the layout does. */

import type { wire } from "@/api";
import type { Tone } from "@/ui";
import { toneOf } from "@/ui";

import { groupName, shortTask, type Group, type Member, type Outline } from "../outline";
import { leadingTone } from "../states";
import { blockColumns, blockSize, CARD } from "./block";
import type { LayoutInput } from "./layout";
import type { Size } from "./viewport";

export const KINDS = ["on_success", "on_done", "on_failure"] as const satisfies readonly wire.EdgeKind[];

export const GROUP: Size = { width: 228, height: 70 };

/** A group of at most so many is shown task by task, with the edges of each. */
export const FEW = 8;

interface AnyBox {
  /** The same while it stands for the same. */
  readonly key: string;
  readonly group: Group;
  readonly tone: Tone;
  readonly name: string;
}

/** One task. `member` is null where only its group is known. */
export interface TaskBox extends AnyBox {
  readonly kind: "task";
  readonly id: number;
  readonly member: Member | null;
}

/** Many, folded to a count. */
export interface GroupBox extends AnyBox {
  readonly kind: "group";
}

/** Many, unfolded: those that were read. */
export interface BlockBox extends AnyBox {
  readonly kind: "block";
  readonly members: readonly Member[];
  readonly columns: number;
  /** There are some that were not read. */
  readonly hasMore: boolean;
}

export type Box = TaskBox | GroupBox | BlockBox;

export interface SceneEdge {
  readonly from: number;
  readonly to: number;
  readonly kind: number;
}

export interface Scene {
  readonly boxes: readonly Box[];
  readonly edges: readonly SceneEdge[];
  /** Equal where the layout is: what only changed its state is drawn anew, not laid out anew. */
  readonly shape: string;
  readonly layoutInput: () => LayoutInput;
  /** Edges of single tasks, by box and place within it, where the job was read whole; for what is pointed at. */
  readonly neighbours: (id: number) => readonly Neighbour[];
  readonly placeOf: (id: number) => Place | undefined;
}

export interface Neighbour {
  readonly id: number;
  readonly kind: number;
  readonly isUpstream: boolean;
}

export interface Place {
  readonly box: number;
  /** Within a block; null for a box of its own. */
  readonly card: number | null;
}

export type MembersOf = (group: string) => readonly Member[];

export function kindPlace(kind: wire.EdgeKind): number {
  return Math.max(0, (KINDS as readonly string[]).indexOf(kind));
}

/** `unfolded` are ids of groups; `membersOf` what is known of those of a job that was not read whole. */
export function sceneOf(outline: Outline, unfolded: ReadonlySet<string>, membersOf: MembersOf): Scene {
  const boxes: Box[] = [];
  const boxOfGroup = new Map<string, number>();
  const placeOfTask = new Map<number, Place>();
  for (const group of outline.groups) {
    const members = outline.members?.get(group.id) ?? null;
    boxOfGroup.set(group.id, boxes.length);
    if (members !== null && group.count <= FEW) {
      for (const member of members) {
        placeOfTask.set(member.id, { box: boxes.length, card: null });
        boxes.push(taskBox(group, member));
      }
    } else if (group.count === 1) {
      placeOfTask.set(group.first, { box: boxes.length, card: null });
      boxes.push(taskBox(group, members?.[0] ?? null));
    } else if (unfolded.has(group.id)) {
      const shown = members ?? membersOf(group.id);
      // Of a job that was not read whole no edges of single tasks are known: nobody asks where they are.
      for (const [card, member] of (members ?? []).entries()) placeOfTask.set(member.id, { box: boxes.length, card });
      boxes.push({
        ...common(group),
        kind: "block",
        members: shown,
        columns: blockColumns(group.count),
        hasMore: shown.length < group.count,
      });
    } else {
      for (const member of members ?? []) placeOfTask.set(member.id, { box: boxes.length, card: null });
      boxes.push({ ...common(group), kind: "group" });
    }
  }
  const edges = outline.members === null ? groupEdges(outline, boxOfGroup) : taskEdges(outline, placeOfTask);
  const sizes = boxes.map(sizeOf);
  return {
    boxes,
    edges,
    shape: shapeOf(boxes, sizes, edges),
    layoutInput: () => inputOf(boxes, sizes, edges),
    neighbours: neighbourIndex(outline),
    placeOf: (id) => placeOfTask.get(id),
  };
}

function common(group: Group): AnyBox {
  return { key: group.id, group, tone: leadingTone(group.states), name: groupName(group) };
}

function taskBox(group: Group, member: Member | null): TaskBox {
  const id = member?.id ?? group.first;
  return {
    key: `#${id}`,
    kind: "task",
    group,
    id,
    member,
    tone: member === null ? leadingTone(group.states) : toneOf(member.state),
    name: member === null ? groupName(group) : memberName(member),
  };
}

/** Its label, or the end of what it is called. */
export function memberName(member: Member): string {
  return member.name === member.task ? shortTask(member.task) : member.name;
}

export function sizeOf(box: Box): Size {
  switch (box.kind) {
    case "task":
      return CARD;
    case "group":
      return GROUP;
    case "block":
      return blockSize(box.members.length, box.columns, box.hasMore);
  }
}

function groupEdges(outline: Outline, boxOfGroup: ReadonlyMap<string, number>): readonly SceneEdge[] {
  return outline.edges.flatMap((edge) => {
    const from = boxOfGroup.get(edge.upstream);
    const to = boxOfGroup.get(edge.group);
    return from === undefined || to === undefined || from === to ? [] : [{ from, to, kind: kindPlace(edge.kind) }];
  });
}

/** Each pair of boxes once for each kind, however many tasks are in them. */
function taskEdges(outline: Outline, placeOfTask: ReadonlyMap<number, Place>): readonly SceneEdge[] {
  const known = new Set<string>();
  const edges: SceneEdge[] = [];
  for (const link of outline.links) {
    const from = placeOfTask.get(link.upstream)?.box;
    const to = placeOfTask.get(link.task)?.box;
    if (from === undefined || to === undefined || from === to) continue;
    const kind = kindPlace(link.kind);
    const key = `${from} ${to} ${kind}`;
    if (known.has(key)) continue;
    known.add(key);
    edges.push({ from, to, kind });
  }
  return edges;
}

function inputOf(boxes: readonly Box[], sizes: readonly Size[], edges: readonly SceneEdge[]): LayoutInput {
  return {
    levels: Int32Array.from(boxes, (box) => box.group.level),
    widths: Float64Array.from(sizes, (size) => size.width),
    heights: Float64Array.from(sizes, (size) => size.height),
    from: Int32Array.from(edges, (edge) => edge.from),
    to: Int32Array.from(edges, (edge) => edge.to),
    kinds: Uint8Array.from(edges, (edge) => edge.kind),
  };
}

function shapeOf(boxes: readonly Box[], sizes: readonly Size[], edges: readonly SceneEdge[]): string {
  const digest = new Digest();
  for (const [at, box] of boxes.entries()) {
    for (let letter = 0; letter < box.key.length; letter++) digest.add(box.key.charCodeAt(letter));
    digest.add(box.group.level);
    digest.add(sizes[at]?.width ?? 0);
    digest.add(sizes[at]?.height ?? 0);
  }
  for (const edge of edges) {
    digest.add(edge.from);
    digest.add(edge.to);
    digest.add(edge.kind);
  }
  return `${boxes.length}.${edges.length}.${digest.text()}`;
}

/** Two sums of 32 bits, each of every number in its order. */
class Digest {
  private one = 0x811c9dc5;
  private other = 0x9e3779b9;

  add(value: number): void {
    const whole = value | 0;
    this.one = Math.imul(this.one ^ whole, 0x01000193);
    this.other = Math.imul(this.other + whole, 0x85ebca6b) ^ (this.other >>> 13);
  }

  text(): string {
    return `${(this.one >>> 0).toString(36)}${(this.other >>> 0).toString(36)}`;
  }
}

/** Made when something is pointed at for the first time. */
function neighbourIndex(outline: Outline): (id: number) => readonly Neighbour[] {
  let index: Map<number, Neighbour[]> | null = null;
  return (id) => {
    if (index === null) {
      index = new Map();
      for (const link of outline.links) {
        const kind = kindPlace(link.kind);
        push(index, link.task, { id: link.upstream, kind, isUpstream: true });
        push(index, link.upstream, { id: link.task, kind, isUpstream: false });
      }
    }
    return index.get(id) ?? [];
  };
}

function push(index: Map<number, Neighbour[]>, id: number, neighbour: Neighbour): void {
  const found = index.get(id);
  if (found === undefined) index.set(id, [neighbour]);
  else found.push(neighbour);
}
