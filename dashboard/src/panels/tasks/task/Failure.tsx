import { useEffect } from "react";

import type { wire } from "@/api";
import { Section, Time } from "@/ui";
import { useQueryState } from "@/url/queryState";

import { Timeline } from "../timeline/Timeline";
import { Traceback } from "../traceback/Traceback";
import type { Earlier } from "./earlier";
import styles from "./Task.module.css";

/** Every execution, and the error of one of them: the last that has one, unless another was chosen. */
export function Failure({ task, earlier }: { readonly task: wire.TaskDetail; readonly earlier: Earlier }) {
  const [written, setWritten] = useQueryState("attempt", "");
  const { hasMore, isLoading, problem, load } = earlier;
  // An address may name one that was long ago.
  const isBefore = /^\d+$/.test(written) && Number(written) < (task.attempts[0]?.claim_no ?? 0);
  useEffect(() => {
    if (isBefore && hasMore && !isLoading && problem === null) load();
  });
  const failing = task.attempts.filter((attempt) => attempt.error !== null || attempt.traceback !== null);
  const chosen = failing.find((attempt) => String(attempt.claim_no) === written);
  // A task that succeeded at last is not looked at for how it failed before.
  const shown = chosen ?? (task.state === "completed" ? undefined : failing.at(-1));
  const error = shown?.error ?? (task.state === "completed" ? null : task.error);
  const choose = (claim: number): void => setWritten(String(claim) === written ? "" : String(claim));
  return (
    <>
      {error !== null && (
        <Section
          title="Error"
          actions={
            shown !== undefined && task.attempts.length > 1 ? (
              <span className="muted">
                of {shown.attempt === null ? `claim ${shown.claim_no}` : `attempt ${shown.attempt}`}, <Time at={shown.finished_at} />
              </span>
            ) : undefined
          }
        >
          <div className={styles.error}>
            <p className={styles.errorClass}>{error.error_class ?? "Error"}</p>
            {error.message !== null && error.message !== "" && <p className={styles.message}>{error.message}</p>}
          </div>
          {shown?.traceback != null && shown.traceback.trim() !== "" && <Traceback text={shown.traceback} />}
        </Section>
      )}
      <Section title="Timeline">
        <Timeline task={task} active={shown?.claim_no ?? null} choose={choose} earlier={earlier} />
      </Section>
    </>
  );
}
