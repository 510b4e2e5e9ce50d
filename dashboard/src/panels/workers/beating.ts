/** What the pages of workers compute. Pure. */

import type { wire } from "@/api";
import type { Tone } from "@/ui";

type Worker = Pick<wire.WorkerShown, "state" | "alive" | "last_heartbeat">;

/** Seconds since the last heartbeat by now: as the server said, and what has passed here since it did. */
export function ageNow(age: number, saidAt: number, now: number): number {
  return age + Math.max(0, now - saidAt) / 1000;
}

/** Whether others may take its tasks: it has been silent for longer than its lease. */
export function isSilent(worker: Worker): boolean {
  return !worker.alive && worker.state !== "stopped";
}

export interface Parted<W> {
  readonly working: readonly W[];
  /** Neither heard of nor stopped: killed, cut off, or out of its database's reach. */
  readonly silent: readonly W[];
  /** The last one first. */
  readonly stopped: readonly W[];
}

export function parted<W extends Worker>(workers: readonly W[]): Parted<W> {
  return {
    working: workers.filter((worker) => worker.alive),
    silent: workers.filter(isSilent),
    stopped: workers
      .filter((worker) => !worker.alive && worker.state === "stopped")
      .sort((one, other) => Date.parse(other.last_heartbeat) - Date.parse(one.last_heartbeat)),
  };
}

/** How long since the last heartbeat is too long: past the lease others rescue its tasks. */
export function toneOfAge(age: number, lease: number): Tone {
  if (age > lease) return "bad";
  return age > (2 * lease) / 3 ? "warn" : "good";
}

/** Tasks by the worker that holds them. */
export function byWorker<T extends Pick<wire.TaskSummary, "worker">>(tasks: readonly T[]): ReadonlyMap<string, readonly T[]> {
  const found = new Map<string, T[]>();
  for (const task of tasks) {
    if (task.worker === null) continue;
    const others = found.get(task.worker);
    if (others === undefined) found.set(task.worker, [task]);
    else others.push(task);
  }
  return found;
}

/** An empty list means that it takes whatever there is. */
export function queuesText(queues: readonly string[]): string {
  return queues.length === 0 ? "every queue" : queues.join(", ");
}

/** "2 work on 1 host". */
export function crowdText(working: readonly Pick<wire.WorkerShown, "hostname">[]): string {
  const hosts = new Set(working.map((worker) => worker.hostname)).size;
  if (working.length === 0) return "none works";
  return `${working.length} ${working.length === 1 ? "works" : "work"} on ${hosts} ${hosts === 1 ? "host" : "hosts"}`;
}

/** Host and process; the rest of an id only keeps two of the same apart. */
export function nameOf(worker: Pick<wire.WorkerShown, "hostname" | "pid">): string {
  return `${worker.hostname} · ${worker.pid}`;
}
