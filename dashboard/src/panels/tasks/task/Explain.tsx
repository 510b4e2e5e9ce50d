import { useQuery } from "@tanstack/react-query";

import type { wire } from "@/api";
import { deciderOf, type Role } from "@/app/roles";
import { useMay } from "@/app/session";
import { Button, Copy, LinkButton, Problem, Section, Skeleton } from "@/ui";

import { explainTask } from "../requests";
import { useMend } from "./acts";
import styles from "./Task.module.css";

const LABELS: Readonly<Record<wire.ActShown["kind"], (subject: string) => string>> = {
  resume_queue: (queue) => `Resume ${queue}`,
  retry_task: (id) => `Retry task ${id}`,
  approve_task: () => "Approve",
  look_at_task: (id) => `Look at task ${id}`,
  reset_breaker: (service) => `Close the breaker of ${service}`,
};

interface ExplainProps {
  readonly task: Pick<wire.TaskDetail, "id" | "state" | "eligible_at" | "approval">;
}

/** All reasons for which it is where it is, and what can be done about each. */
export function Explain({ task }: ExplainProps) {
  const explanation = useQuery({
    queryKey: ["task", task.id, "explain", task.state],
    queryFn: ({ signal }) => explainTask(task.id, signal),
    refetchInterval: 5000,
  });
  return (
    <Section title="Why does this wait?">
      {explanation.isPending && <Skeleton lines={2} />}
      {explanation.error !== null && <Problem error={explanation.error} retry={() => void explanation.refetch()} />}
      {explanation.data !== undefined && (
        <ul className={styles.reasons}>
          {explanation.data.reasons.map((reason) => (
            <Reason key={reason.what} reason={reason} decider={deciderOf(task.approval?.role ?? null)} />
          ))}
        </ul>
      )}
    </Section>
  );
}

/** The least role that each act takes; what waits for a word says itself whose. */
function roleFor(kind: wire.ActShown["kind"], decider: Role): Role {
  if (kind === "approve_task") return decider;
  return kind === "retry_task" ? "user" : "operator";
}

function Reason({ reason, decider }: { readonly reason: wire.ReasonShown; readonly decider: Role }) {
  const may = useMay();
  const mend = useMend();
  const { act } = reason;
  const mayAct = act !== null && may({ role: roleFor(act.kind, decider), scope: "control" });
  return (
    <li className={styles.reason}>
      <p>{sentence(reason.what)}</p>
      <div className="cluster">
        {act !== null && act.kind === "look_at_task" && <LinkButton to={`/tasks/${act.subject}`}>{LABELS[act.kind](act.subject)}</LinkButton>}
        {mayAct && act.kind !== "look_at_task" && (
          <Button busy={mend.isPending} onClick={() => mend.mutate(act)}>
            {LABELS[act.kind](act.subject)}
          </Button>
        )}
        {reason.mend !== null && (
          <span className={styles.command}>
            <code>{reason.mend}</code>
            {reason.mend.startsWith("headrace ") && <Copy text={reason.mend} label="the command" />}
          </span>
        )}
      </div>
    </li>
  );
}

function sentence(words: string): string {
  return `${words.charAt(0).toUpperCase()}${words.slice(1)}.`;
}
