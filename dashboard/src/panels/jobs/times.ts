/** How long a job took. */

import type { wire } from "@/api";
import { secondsBetween } from "@/ui";

/** Seconds from its start to its end; null before that, and for one that never started. */
export function secondsOf(job: Pick<wire.JobShown, "started_at" | "completed_at">): number | null {
  return secondsBetween(job.started_at, job.completed_at);
}
