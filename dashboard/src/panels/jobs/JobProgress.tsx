import { Progress } from "@/ui";

import { progressText, segmentsOf, waitingOf, type JobCounts } from "./progress";

/** How far a job is: what completed, failed, was cancelled and runs, side by side; the rest waits. */
export function JobProgress({ job, name }: { readonly job: JobCounts; readonly name: string }) {
  const waiting = waitingOf(job);
  const parts = segmentsOf(job);
  const said = [...parts.map((part) => `${part.value.toLocaleString()} ${part.label}`)];
  if (waiting > 0) said.push(`${waiting.toLocaleString()} waiting`);
  return (
    <>
      {job.total > 0 ? (
        <Progress label={`Progress of ${name}`} total={job.total} parts={parts} text={progressText(job)} />
      ) : (
        <span className="muted">no tasks</span>
      )}
      <span className="visually-hidden">{said.join(", ")}</span>
    </>
  );
}
