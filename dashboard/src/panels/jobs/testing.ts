/** Tasks and graphs for tests. */

import type { wire } from "@/api";

import type { WholeGraph } from "./grouping";
import type { Group, Member, TaskEdge } from "./outline";

export function node(id: number, task: string, more: Partial<Member> = {}): Member {
  return {
    id,
    name: task,
    task,
    state: "pending",
    reason: null,
    critical: true,
    attempts: 0,
    queue: "default",
    waiting_on: null,
    created_at: "2026-05-01T08:00:00Z",
    started_at: null,
    finished_at: null,
    took: null,
    error: null,
    progress: null,
    ...more,
  };
}

export function edge(upstream: number, task: number, kind: wire.EdgeKind = "on_success"): TaskEdge {
  return { task, upstream, kind, passes: false };
}

/** One, many that wait for it, and one that waits for all of them. Ids from 1. */
export function fan(many: number): WholeGraph {
  const last = many + 2;
  const middle = Array.from({ length: many }, (_, at) => at + 2);
  return {
    nodes: [node(1, "shop.load"), ...middle.map((id) => node(id, "shop.work")), node(last, "shop.join")],
    edges: middle.flatMap((id) => [edge(1, id), edge(id, last)]),
  };
}

export function group(id: string, more: Partial<Group> = {}): Group {
  return {
    id,
    task: `shop.${id}`,
    label: null,
    level: 0,
    count: 1,
    states: { pending: more.count ?? 1 },
    started_at: null,
    finished_at: null,
    took: { n: 0, mean: null, max: null },
    first: 1,
    failed: null,
    error: null,
    ...more,
  };
}

export function detailed(more: Partial<wire.JobDetail> = {}): wire.JobDetail {
  return { ...job(), hooks: { on_success: null, on_failure: null }, ...more };
}

export function job(more: Partial<wire.JobShown> = {}): wire.JobShown {
  return {
    id: 7,
    name: "nightly",
    description: null,
    state: "running",
    reason: null,
    run_no: 1,
    owner: null,
    created_at: "2026-05-01T08:00:00Z",
    started_at: "2026-05-01T08:00:01Z",
    completed_at: null,
    deadline_at: null,
    total: 10,
    completed: 4,
    failed: 1,
    cancelled: 0,
    running: 2,
    open: 5,
    metadata: {},
    ...more,
  };
}
