import { useQuery } from "@tanstack/react-query";
import { Link } from "react-router";

import { api, call } from "@/api";
import { Button, Problem, Progress, Section, StateBadge, Time } from "@/ui";

import { useForgetReplays, useReplays, type Replay } from "./acts";
import styles from "./DeadLetters.module.css";
import { answersText, partsOf, partsText } from "./letters";

const EACH = 3000;

/** What was made to run again from here, and what becomes of it. */
export function Replayed() {
  const replays = useReplays();
  const forget = useForgetReplays();
  if (replays.length === 0) return null;
  return (
    <Section
      title="Replayed from here"
      actions={
        <Button kind="quiet" onClick={forget}>
          Clear
        </Button>
      }
    >
      <ul className={styles.replays}>
        {replays.map((replay) => (
          <li key={replay.at}>
            <Outcome replay={replay} />
          </li>
        ))}
      </ul>
    </Section>
  );
}

function Outcome({ replay }: { readonly replay: Replay }) {
  const tasks = useQuery({
    queryKey: ["tasks", "replayed", replay.ids],
    queryFn: ({ signal }) =>
      call(api.GET("/api/v1/tasks", { signal, params: { query: { id: [...replay.ids], limit: replay.ids.length } } })),
    refetchInterval: EACH,
  });
  const found = tasks.data?.items ?? [];
  const parts = partsOf(found);
  const counted = Object.values(replay.answers).reduce((sum, count) => sum + count, 0);
  return (
    <div className={styles.replay}>
      <p>
        <strong>{replay.what}</strong> <span className="muted">{answersText(replay.answers)}</span>{" "}
        <span className="muted">
          <Time at={new Date(replay.at).toISOString()} />
        </span>
      </p>
      {tasks.error !== null && <Problem title="What became of them could not be read" error={tasks.error} />}
      {found.length > 0 && (
        <>
          <Progress label={`What became of ${replay.what}`} total={found.length} parts={parts} text={partsText(parts, found.length)} />
          <details>
            <summary>
              {found.length === 1 ? "The task" : `The ${found.length.toLocaleString("en-US")} tasks`}
              {counted > replay.ids.length && `, of ${counted.toLocaleString("en-US")}`}
            </summary>
            <ul className={styles.tasks}>
              {found.map((task) => (
                <li key={task.id}>
                  <Link to={`/tasks/${task.id}`}>
                    {task.id} {task.label ?? task.name}
                  </Link>
                  <StateBadge state={task.state} reason={task.reason} />
                </li>
              ))}
            </ul>
          </details>
        </>
      )}
    </div>
  );
}
