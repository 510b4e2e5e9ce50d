import { Link } from "react-router";

import type { wire } from "@/api";
import { Copy, Fact, Facts, Section } from "@/ui";

import { Relatives } from "./Relatives";
import styles from "./Task.module.css";

/** What it belongs to, comes from and leads to. */
export function Neighbours({ task }: { readonly task: wire.TaskDetail }) {
  const hasNone =
    task.job === null &&
    task.schedule === null &&
    task.trace_id === null &&
    task.reenqueued_from === null &&
    task.parents.items.length === 0 &&
    task.children.items.length === 0;
  if (hasNone) return null;
  return (
    <Section title="Where it belongs">
      <div className="stack">
        <Facts>
          {task.job !== null && (
            <Fact name="Job">
              <Link to={`/jobs/${task.job}`}>{task.job_name ?? task.job}</Link> <span className="muted">#{task.job}</span>
            </Fact>
          )}
          {task.schedule !== null && (
            <Fact name="Fired by the schedule">
              <Link to={`/schedules/${encodeURIComponent(task.schedule)}`}>{task.schedule}</Link>
            </Fact>
          )}
          {task.reenqueued_from !== null && (
            <Fact name="Copy of">
              <Link to={`/tasks/${task.reenqueued_from}`}>#{task.reenqueued_from}</Link>
            </Fact>
          )}
          {task.trace_id !== null && (
            <Fact name="Trace">
              <span className={styles.trace}>
                {task.trace_url === null ? (
                  <code>{task.trace_id}</code>
                ) : (
                  <a href={task.trace_url} target="_blank" rel="noreferrer">
                    <code>{task.trace_id}</code>
                  </a>
                )}
                <Copy text={task.trace_id} label="the trace id" />
              </span>
            </Fact>
          )}
        </Facts>
        <Relatives title="It waits for" relatives={task.parents} job={task.job} />
        <Relatives title="Waits for it" relatives={task.children} job={task.job} />
      </div>
    </Section>
  );
}
