import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useCallback, useEffect, useRef, useState } from "react";
import { Link, useNavigate, useParams } from "react-router";

import type { wire } from "@/api";
import type { Shortcut } from "@/app/panel";
import { usePageShortcuts } from "@/app/shortcuts";
import { useLive, useLiveMessages, type TaskMessage } from "@/live";
import { Button, Empty, Json, LinkButton, Page, Problem, Progress, readProgress, Section, Skeleton, StateBadge, useConfirm } from "@/ui";
import { CheckIcon, CloseIcon, EditIcon, RetryIcon, StopIcon, TrashIcon } from "@/ui/icons";

import { KeyHints } from "../keys";
import { LogPanel } from "../logs/LogPanel";
import { getTask } from "../requests";
import { quoted } from "../search/query";
import { ENDED, useAllowed, useCancel, useRemove, useRetry } from "./acts";
import { ClearDialog } from "./ClearDialog";
import { DecideDialog } from "./DecideDialog";
import { Arguments, Details } from "./Details";
import { useEarlier } from "./earlier";
import { Explain } from "./Explain";
import { Failure } from "./Failure";
import { Neighbours } from "./Neighbours";
import { Result } from "./Result";
import styles from "./Task.module.css";

const WAITING: ReadonlySet<string> = new Set(["pending", "blocked", "pending_approval", "claimed", "lost", "paused", "cancelling"]);
/** Between two looks at a task that says of itself that it changed. */
const SOONEST = 300;

export function Component() {
  const { id: written = "" } = useParams();
  const id = /^\d{1,16}$/.test(written) ? Number(written) : null;
  if (id === null || id < 1 || !Number.isSafeInteger(id)) {
    return (
      <Page title="Task" crumbs={[{ title: "Tasks", to: "/tasks" }]}>
        <Empty title={`«${written}» is no id of a task`} action={<Link to="/tasks">See all tasks</Link>}>
          Ids are whole numbers.
        </Empty>
      </Page>
    );
  }
  return <TaskShown key={id} id={id} />;
}

function TaskShown({ id }: { readonly id: number }) {
  const query = useTask(id);
  const update = useLive({ kind: "task", id }, "task_update");
  const [known, earlier] = useEarlier(id, query.data);
  const task = known === undefined ? undefined : withUpdate(known, update);
  const allowed = useAllowed(task);
  const retry = useRetry(id);
  const cancel = useCancel(id);
  const remove = useRemove(id);
  const confirm = useConfirm();
  const navigate = useNavigate();
  const [dialog, setDialog] = useState<"clear" | "approve" | "reject" | null>(null);
  const [explains, setExplains] = useState(false);

  async function askCancel(): Promise<void> {
    const body = <p>What runs is told to stop; what waits for it is cancelled as well.</p>;
    if (await confirm({ title: `Cancel task ${id}?`, act: "Cancel the task", danger: true, body })) cancel.mutate(undefined);
  }

  async function askRemove(): Promise<void> {
    const body = <p>It is gone with its result and its log.</p>;
    if (!(await confirm({ title: `Delete task ${id}?`, act: "Delete the task", danger: true, body }))) return;
    remove.mutate(undefined, { onSuccess: () => void navigate("/tasks") });
  }

  const shortcuts: readonly Shortcut[] = [
    ...(allowed.retry ? [{ keys: "r", title: "Retry", run: () => retry.mutate(undefined) }] : []),
    ...(allowed.cancel ? [{ keys: "c", title: "Cancel", run: () => void askCancel() }] : []),
    ...(allowed.edit ? [{ keys: "e", title: "Edit and enqueue again", run: () => void navigate(`/tasks/${id}/edit`) }] : []),
    { keys: "y", title: "Why is it so?", run: () => setExplains(true) },
  ];
  usePageShortcuts(shortcuts);

  if (task === undefined) {
    return (
      <Page title={`Task ${id}`} crumbs={[{ title: "Tasks", to: "/tasks" }]}>
        {query.error === null ? <Skeleton /> : <NotShown id={id} error={query.error} retry={() => void query.refetch()} />}
      </Page>
    );
  }
  const showsWhy = explains || WAITING.has(task.state);
  return (
    <Page
      title={task.label ?? task.name}
      aside={
        <span className="cluster">
          <span className="muted">#{task.id}</span>
          <StateBadge state={task.state} reason={task.reason === "error" ? null : task.reason} />
        </span>
      }
      crumbs={[
        { title: "Tasks", to: "/tasks" },
        ...(task.label !== null && task.label !== task.name ? [{ title: task.name, to: `/tasks?q=name:${encodeURIComponent(quoted(task.name))}` }] : []),
      ]}
      actions={
        <>
          {allowed.decide && (
            <>
              <Button kind="primary" icon={<CheckIcon />} onClick={() => setDialog("approve")}>
                Approve
              </Button>
              <Button icon={<CloseIcon />} onClick={() => setDialog("reject")}>
                Reject
              </Button>
            </>
          )}
          {allowed.retry && (
            <Button kind="primary" icon={<RetryIcon />} busy={retry.isPending} onClick={() => retry.mutate(undefined)}>
              Retry
            </Button>
          )}
          {allowed.cancel && (
            <Button icon={<StopIcon />} busy={cancel.isPending} onClick={() => void askCancel()}>
              Cancel
            </Button>
          )}
          {allowed.edit && (
            <LinkButton to={`/tasks/${id}/edit`} icon={<EditIcon />}>
              Edit and enqueue again
            </LinkButton>
          )}
          {allowed.clear && (
            <Button icon={<RetryIcon />} onClick={() => setDialog("clear")}>
              Clear with what follows
            </Button>
          )}
          {!showsWhy && (
            <Button kind="quiet" onClick={() => setExplains(true)}>
              Why is it so?
            </Button>
          )}
          {allowed.remove && (
            <Button kind="quiet" icon={<TrashIcon />} busy={remove.isPending} onClick={() => void askRemove()}>
              Delete
            </Button>
          )}
        </>
      }
    >
      <TaskProgress task={task} />
      <div className={styles.columns}>
        <div className={styles.main}>
          {showsWhy && <Explain task={task} />}
          <Failure task={task} earlier={earlier} />
          {task.has_result && task.state === "completed" && <Result task={task} />}
          <LogPanel task={task} ended={ENDED.has(task.state)} />
        </div>
        <div className={styles.side}>
          <Details task={task} />
          <Section title="Arguments">
            <Arguments task={task} />
          </Section>
          <Neighbours task={task} />
          {Object.keys(task.metadata).length > 0 && (
            <Section title="Metadata">
              <Json value={task.metadata} label="the metadata" />
            </Section>
          )}
        </div>
      </div>
      <KeyHints shortcuts={shortcuts} />
      {dialog === "clear" && <ClearDialog id={id} close={() => setDialog(null)} />}
      {(dialog === "approve" || dialog === "reject") && <DecideDialog id={id} decision={dialog} close={() => setDialog(null)} />}
    </Page>
  );
}

/** Asked again when the task says that it changed. */
function useTask(id: number) {
  const queries = useQueryClient();
  const timer = useRef(0);
  const query = useQuery({ queryKey: ["task", id], queryFn: ({ signal }) => getTask(id, signal) });
  const changed = useCallback(() => {
    if (timer.current !== 0) return;
    timer.current = window.setTimeout(() => {
      timer.current = 0;
      void queries.invalidateQueries({ queryKey: ["task", id] });
    }, SOONEST);
  }, [queries, id]);
  const known = useRef("");
  useLiveMessages({ kind: "task", id }, (messages) => {
    const update = messages.findLast((message) => message.type === "task_update");
    if (update === undefined) return;
    // Progress is shown as it is said; only what changes the rest is a reason to ask.
    const said = `${update.status} ${update.reason} ${update.attempt} ${update.claim_no} ${update.run_no}`;
    if (said !== known.current) changed();
    known.current = said;
  });
  useEffect(() => () => window.clearTimeout(timer.current), []);
  return query;
}

/** With what was said last about its progress, where it is of the same run. */
function withUpdate(task: wire.TaskDetail, update: TaskMessage | undefined): wire.TaskDetail {
  if (update === undefined || update.run_no !== task.run_no || ENDED.has(task.state)) return task;
  return { ...task, progress: update.progress };
}

function NotShown({ id, error, retry }: { readonly id: number; readonly error: { readonly status: number }; retry(): void }) {
  if (error.status !== 404) return <Problem error={error} retry={retry} />;
  return (
    <div role="alert">
      <Empty title={`There is no task ${id}`} action={<Link to="/tasks">See all tasks</Link>}>
        It was deleted, or its time was over and it was removed, or it belongs to somebody whose tasks you do not see.
      </Empty>
    </div>
  );
}

function TaskProgress({ task }: { readonly task: wire.TaskDetail }) {
  const progress = ENDED.has(task.state) ? null : readProgress(task.progress);
  if (progress === null) return null;
  const part = progress.total === null ? `${progress.value ?? ""}` : `${(progress.value ?? 0).toLocaleString()} of ${progress.total.toLocaleString()}`;
  const text = [part, progress.message ?? ""].filter((each) => each !== "").join(" · ");
  return <Progress label="Progress" value={progress.value ?? 0} total={progress.total} text={text} />;
}
