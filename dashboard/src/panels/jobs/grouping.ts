/** Gathers the tasks of a job that was read whole into groups, by the same rule as the server does for large ones. */

import type { wire } from "@/api";

import type { Group, GroupEdge, Member, Outline, TaskEdge } from "./outline";

interface Gathered {
  readonly id: string;
  readonly level: number;
  readonly members: Member[];
}

export interface WholeGraph {
  readonly nodes: readonly Member[];
  readonly edges: readonly TaskEdge[];
}

/** Siblings with the same task name, kinds of edges and groups that they wait for are one group. */
export function gathered(graph: WholeGraph): Outline {
  const upstreams = new Map<number, TaskEdge[]>();
  const known = new Set(graph.nodes.map((node) => node.id));
  const links = graph.edges.filter((edge) => known.has(edge.task) && known.has(edge.upstream));
  for (const edge of links) {
    const found = upstreams.get(edge.task);
    if (found === undefined) upstreams.set(edge.task, [edge]);
    else found.push(edge);
  }

  const groupOf = new Map<number, Gathered>();
  const byKey = new Map<string, Gathered>();
  for (const node of inOrder(graph.nodes, upstreams)) {
    const waits = new Set<string>();
    let level = 0;
    for (const edge of upstreams.get(node.id) ?? []) {
      const upstream = groupOf.get(edge.upstream);
      if (upstream === undefined) continue; // only in a circle, which the server refuses
      waits.add(`${edge.kind}:${upstream.id}`);
      level = Math.max(level, upstream.level + 1);
    }
    const key = JSON.stringify([node.task, [...waits].sort()]);
    let group = byKey.get(key);
    if (group === undefined) {
      // By the id of its first task: the same group has the same id whenever it is looked at.
      group = { id: `t${node.id}`, level, members: [] };
      byKey.set(key, group);
    }
    group.members.push(node);
    groupOf.set(node.id, group);
  }

  const all = [...byKey.values()].sort((one, other) => one.level - other.level);
  return {
    groups: all.map(summed),
    edges: edgesOf(links, groupOf),
    merged: false,
    complete: true,
    members: new Map(all.map((group) => [group.id, group.members])),
    links,
  };
}

/** So that each comes after those it waits for. Ids nearly always are such an order. */
function inOrder(nodes: readonly Member[], upstreams: ReadonlyMap<number, readonly TaskEdge[]>): readonly Member[] {
  const byId = new Map(nodes.map((node) => [node.id, node]));
  const done = new Set<number>();
  const ordered: Member[] = [];
  for (const start of nodes) {
    // A stack of our own: a chain of thousands would be too deep for calls.
    const stack: { readonly node: Member; at: number }[] = [{ node: start, at: 0 }];
    const open = new Set<number>([start.id]);
    while (stack.length > 0) {
      const top = stack[stack.length - 1];
      if (top === undefined) break;
      const waits = upstreams.get(top.node.id) ?? [];
      const edge = done.has(top.node.id) ? undefined : waits[top.at++];
      if (edge === undefined) {
        if (!done.has(top.node.id)) {
          done.add(top.node.id);
          ordered.push(top.node);
        }
        stack.pop();
        continue;
      }
      const upstream = byId.get(edge.upstream);
      if (upstream !== undefined && !done.has(upstream.id) && !open.has(upstream.id)) {
        open.add(upstream.id);
        stack.push({ node: upstream, at: 0 });
      }
    }
  }
  return ordered;
}

function edgesOf(links: readonly TaskEdge[], groupOf: ReadonlyMap<number, Gathered>): readonly GroupEdge[] {
  const counts = new Map<string, { group: string; upstream: string; kind: wire.EdgeKind; count: number }>();
  for (const link of links) {
    const group = groupOf.get(link.task);
    const upstream = groupOf.get(link.upstream);
    if (group === undefined || upstream === undefined) continue;
    const key = `${group.id} ${upstream.id} ${link.kind}`;
    const found = counts.get(key);
    if (found === undefined) counts.set(key, { group: group.id, upstream: upstream.id, kind: link.kind, count: 1 });
    else found.count++;
  }
  return [...counts.values()];
}

function summed(group: Gathered): Group {
  const { members } = group;
  const states: Partial<Record<wire.TaskState, number>> = {};
  const first = members[0];
  let label: string | null = first === undefined || first.name === first.task ? null : first.name;
  let started: string | null = null;
  let finished: string | null = null;
  let open = false;
  let failed: Member | null = null;
  let took = { n: 0, sum: 0, max: 0 };
  for (const member of members) {
    states[member.state] = (states[member.state] ?? 0) + 1;
    if (label !== null && member.name !== label) label = null;
    if (member.started_at !== null && (started === null || member.started_at < started)) started = member.started_at;
    if (member.finished_at === null) open = true;
    else if (finished === null || member.finished_at > finished) finished = member.finished_at;
    if (member.state === "failed") failed ??= member;
    if (member.took !== null) {
      took = { n: took.n + 1, sum: took.sum + member.took, max: Math.max(took.max, member.took) };
    }
  }
  return {
    id: group.id,
    task: first?.task ?? "",
    label,
    level: group.level,
    count: members.length,
    states,
    started_at: started,
    finished_at: open ? null : finished,
    took: took.n === 0 ? { n: 0, mean: null, max: null } : { n: took.n, mean: took.sum / took.n, max: took.max },
    first: first?.id ?? 0,
    failed: failed?.id ?? null,
    error: failed?.error ?? null,
  };
}
