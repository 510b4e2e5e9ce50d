/** How far a job is, as parts of a bar and as words. */

import type { wire } from "@/api";
import type { Part } from "@/ui";

export type JobCounts = Pick<wire.JobShown, "total" | "completed" | "failed" | "cancelled" | "running">;

/** What has ended, what runs; the rest of the bar is what waits. Never more than the whole. */
export function segmentsOf(job: JobCounts): readonly Part[] {
  let left = Math.max(0, job.total);
  const take = (wanted: number): number => {
    const taken = Math.min(left, Math.max(0, wanted));
    left -= taken;
    return taken;
  };
  const parts: Part[] = [
    { tone: "good", value: take(job.completed), label: "completed" },
    { tone: "bad", value: take(job.failed), label: "failed" },
    { tone: "ended", value: take(job.cancelled), label: "cancelled" },
    { tone: "active", value: take(job.running), label: "running" },
  ];
  return parts.filter((part) => part.value > 0);
}

export function waitingOf(job: JobCounts): number {
  return Math.max(0, job.total - job.completed - job.failed - job.cancelled - job.running);
}

/** "90 of 100": what has ended, however it ended. */
export function progressText(job: JobCounts): string {
  const ended = Math.min(job.total, job.completed + job.failed + job.cancelled);
  return `${ended.toLocaleString()} of ${job.total.toLocaleString()}`;
}

/** Per cent that never says 100 before the last one has ended, nor 0 after the first. */
export function percentOf(job: JobCounts): number {
  if (job.total <= 0) return 0;
  const ended = Math.min(job.total, job.completed + job.failed + job.cancelled);
  if (ended === job.total) return 100;
  if (ended === 0) return 0;
  return Math.min(99, Math.max(1, Math.round((100 * ended) / job.total)));
}
