import { Link } from "react-router";

import type { wire } from "@/api";
import { Duration, Progress, readProgress, secondsBetween, StateBadge, Time, type Column } from "@/ui";

import styles from "./TasksPage.module.css";

const AT_WORK: ReadonlySet<string> = new Set(["running", "paused", "cancelling"]);

export const columns: readonly Column<wire.TaskSummary>[] = [
  {
    id: "task",
    title: "Task",
    cell: (task) => (
      <span className={styles.task}>
        <span>{task.name}</span>
        {task.label !== null && task.label !== task.name && <span className={styles.label}>{task.label}</span>}
        <span className={styles.id}>#{task.id}</span>
      </span>
    ),
  },
  { id: "state", title: "State", cell: (task) => <State task={task} /> },
  { id: "queue", title: "Queue", cell: (task) => task.queue, hide: "narrow" },
  {
    id: "attempts",
    title: "Attempts",
    align: "right",
    hide: "narrow",
    cell: (task) => (
      <span title={task.run_no > 1 ? `Run ${task.run_no}` : undefined}>
        {AT_WORK.has(task.state) ? task.attempt + 1 : task.attempt}/{task.max_attempts}
      </span>
    ),
  },
  { id: "when", title: "When", cell: (task) => <When task={task} /> },
  { id: "ran", title: "Ran", align: "right", hide: "medium", cell: (task) => <Ran task={task} /> },
  { id: "said", title: "Error or progress", wide: true, cell: (task) => <Said task={task} /> },
  {
    id: "job",
    title: "Job",
    hide: "medium",
    cell: (task) => (task.job === null ? null : <Link to={`/jobs/${task.job}`}>{task.job}</Link>),
  },
];

function State({ task }: { readonly task: wire.TaskSummary }) {
  // An error is said in its own column; what else is the reason is said here.
  return <StateBadge state={task.state} reason={task.reason === "error" ? null : task.reason} />;
}

function When({ task }: { readonly task: wire.TaskSummary }) {
  if (task.finished_at !== null) return <Time at={task.finished_at} />;
  if (task.state === "pending" && Date.parse(task.eligible_at) > Date.now()) {
    return (
      <span>
        due <Time at={task.eligible_at} />
      </span>
    );
  }
  return <Time at={task.started_at ?? task.created_at} />;
}

function Ran({ task }: { readonly task: wire.TaskSummary }) {
  if (AT_WORK.has(task.state)) return <Duration since={task.started_at} />;
  return <Duration seconds={secondsBetween(task.started_at, task.finished_at)} />;
}

function Said({ task }: { readonly task: wire.TaskSummary }) {
  const progress = AT_WORK.has(task.state) ? readProgress(task.progress) : null;
  if (progress !== null) {
    const text = progress.total === null ? (progress.value ?? "") : `${progress.value ?? 0}/${progress.total}`;
    const said = [String(text), progress.message ?? ""].filter((each) => each !== "").join(" · ");
    return <Progress label={`Progress of task ${task.id}`} value={progress.value ?? 0} total={progress.total} text={said} />;
  }
  if (task.error === null) return null;
  const kind = task.error.error_class?.split(".").at(-1);
  return (
    <span className={styles.error} title={`${task.error.error_class ?? ""}: ${task.error.message ?? ""}`}>
      {kind !== undefined && <strong>{kind}</strong>} {task.error.message}
    </span>
  );
}
