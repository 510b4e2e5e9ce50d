import { useMutation, useQuery, useQueryClient, type UseQueryResult } from "@tanstack/react-query";
import { useState } from "react";
import { Link } from "react-router";

import { api, call, placedErrors, type wire } from "@/api";
import { deciderOf } from "@/app/roles";
import { useMay } from "@/app/session";
import { Button, Code, Fact, Facts, Json, Problem, Skeleton, TextArea, Time, useToasts } from "@/ui";
import { CheckIcon, CloseIcon } from "@/ui/icons";

import styles from "./Approvals.module.css";
import { askedText, commandLine, isQuestion, kindText, titleOf } from "./waiting";

/** One thing that waits for a word: what it is, whose, with which arguments, and the two answers. */
export function Request({ task }: { readonly task: wire.TaskSummary }) {
  const title = titleOf(task);
  const heading = `approval-${task.id}`;
  const detail = useQuery({
    queryKey: ["task", task.id],
    queryFn: ({ signal }) => call(api.GET("/api/v1/tasks/{id}", { signal, params: { path: { id: task.id } } })),
  });
  const role = detail.data?.approval?.role ?? null;
  const mayDecide = useMay()({ role: deciderOf(role), scope: "control" });
  return (
    <article className={styles.request} aria-labelledby={heading}>
      <header className={styles.head}>
        <h2 id={heading}>
          <Link to={`/tasks/${task.id}`}>{title}</Link>
        </h2>
        <span className="muted">
          task {task.id}, asked <Time at={task.enqueued_at} />
        </span>
      </header>
      <div className={styles.parts}>
        <div className="stack">
          <Facts>
            <Fact name="Asked by">{task.owner ?? <span className="muted">your own code</span>}</Fact>
            <Fact name="What">{kindText(task)}</Fact>
            {detail.data !== undefined && <Fact name="Who decides">{askedText(role)}</Fact>}
            <Fact name="Queue">
              <Link to={`/queues/${encodeURIComponent(task.queue)}`}>{task.queue}</Link>
            </Fact>
            {task.job !== null && (
              <Fact name="Part of">
                <Link to={`/jobs/${task.job}`}>job {task.job}</Link>
              </Fact>
            )}
          </Facts>
          <Arguments task={task} detail={detail} />
        </div>
        {mayDecide ? (
          <Decision task={task} title={title} />
        ) : (
          <p className="muted">This is not yours to decide: it waits for {askedText(role)}.</p>
        )}
      </div>
    </article>
  );
}

interface ArgumentsProps {
  readonly task: wire.TaskSummary;
  readonly detail: UseQueryResult<wire.TaskDetail>;
}

function Arguments({ task, detail }: ArgumentsProps) {
  if (detail.isPending) return <Skeleton lines={2} />;
  if (detail.data === undefined) {
    return <Problem title="Its arguments could not be read" error={detail.error} retry={() => void detail.refetch()} />;
  }
  const value: unknown = detail.data.arguments;
  const command = commandLine(task, value);
  const isEmpty = typeof value === "object" && value !== null && Object.keys(value).length === 0;
  if (isEmpty) {
    return <p className="muted">{isQuestion(task) ? "What comes behind it in the job goes on when you approve." : "It has no arguments."}</p>;
  }
  return (
    <div className="stack">
      {command !== null && <Code text={command} label="command" />}
      <Json value={value} label={`arguments of task ${task.id}`} />
    </div>
  );
}

function Decision({ task, title }: { readonly task: wire.TaskSummary; readonly title: string }) {
  const [note, setNote] = useState("");
  const [lacksReason, setLacksReason] = useState(false);
  const queries = useQueryClient();
  const toasts = useToasts();
  const decide = useMutation({
    mutationFn: (approved: boolean) => {
      const params = { params: { path: { id: task.id } }, body: { note: note.trim() === "" ? null : note.trim() } };
      return call(approved ? api.POST("/api/v1/tasks/{id}/approve", params) : api.POST("/api/v1/tasks/{id}/reject", params));
    },
    onSuccess: (decided, approved) => {
      toasts.say(
        approved ? `${title} is approved` : `${title} is rejected`,
        approved ? `Task ${decided.id} joins the queue ${decided.queue}.` : `Task ${decided.id} has ended.`,
      );
      queries.setQueryData(["task", task.id], decided);
      return queries.invalidateQueries({ queryKey: ["tasks"] });
    },
  });
  const refused = placedErrors(decide.error, ["note"]);

  function answer(approved: boolean): void {
    const isMissing = !approved && note.trim() === "";
    setLacksReason(isMissing);
    if (!isMissing) decide.mutate(approved);
  }

  return (
    <div className={styles.decision}>
      <TextArea
        label="Reason"
        hint="Kept with the task and in the audit log. To reject takes one."
        rows={2}
        maxLength={2000}
        error={lacksReason ? "Say why, so that whoever asked can mend it" : refused.fields.note}
        value={note}
        onChange={(event) => {
          setNote(event.target.value);
          setLacksReason(false);
        }}
      />
      {refused.rest !== null && <Problem title="Nothing was decided" error={refused.rest} />}
      <div className="cluster">
        <Button
          kind="primary"
          icon={<CheckIcon />}
          aria-label={`Approve ${title}, task ${task.id}`}
          busy={decide.isPending && decide.variables}
          disabled={decide.isPending}
          onClick={() => answer(true)}
        >
          Approve
        </Button>
        <Button
          icon={<CloseIcon />}
          aria-label={`Reject ${title}, task ${task.id}`}
          busy={decide.isPending && !decide.variables}
          disabled={decide.isPending}
          onClick={() => answer(false)}
        >
          Reject
        </Button>
      </div>
    </div>
  );
}
