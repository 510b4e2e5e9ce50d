import type { wire } from "@/api";
import type { Question } from "@/ui";

/** Before what failed runs again: how many at least, and how many at most. */
export function retryQuestion(job: Pick<wire.JobShown, "name" | "failed" | "cancelled">): Question {
  const { failed, cancelled } = job;
  const tasks = (count: number): string => (count === 1 ? "1 task" : `${count.toLocaleString()} tasks`);
  return {
    title: `Retry what failed in ${job.name}?`,
    count: failed > 0 ? failed : cancelled,
    act: `Retry ${tasks(failed > 0 ? failed : cancelled)}`,
    body: (
      <p>
        {failed > 0 && cancelled > 0
          ? `${tasks(failed)} that failed, and of the ${cancelled.toLocaleString()} that were cancelled those that were so because of them or with the job. `
          : failed > 0
            ? `${tasks(failed)} that failed. `
            : `Tasks that were cancelled with the job or because of others, at most ${cancelled.toLocaleString()}. `}
        What completed is not run again.
      </p>
    ),
  };
}
