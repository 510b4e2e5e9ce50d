import { useQuery } from "@tanstack/react-query";
import { useMemo } from "react";
import { Link, useParams } from "react-router";

import { holdsInexact, holdsRedacted, type wire } from "@/api";
import { Empty, Page, Problem, Skeleton } from "@/ui";

import { getRegistry, getTask, reenqueueTask } from "../requests";
import { commandDraftOf, NO_COMMAND } from "./command";
import styles from "./Form.module.css";
import { modelOf, type Json } from "./model";
import { NO_OPTIONS } from "./options";
import { TaskForm, type Filled, type Subject } from "./TaskForm";
import { useSubmit } from "./useSubmit";

export function Component() {
  const { id: written = "" } = useParams();
  const id = Number(written);
  const task = useQuery({ queryKey: ["task", id], queryFn: ({ signal }) => getTask(id, signal), refetchOnWindowFocus: false });
  const registry = useQuery({ queryKey: ["registry"], queryFn: ({ signal }) => getRegistry(signal), staleTime: 60_000 });
  const crumbs = [
    { title: "Tasks", to: "/tasks" },
    { title: `Task ${written}`, to: `/tasks/${written}` },
  ];
  const error = task.error ?? registry.error;
  if (task.data === undefined || registry.data === undefined) {
    return (
      <Page title="Edit and enqueue again" crumbs={crumbs}>
        {error === null ? <Skeleton /> : <Problem error={error} retry={() => void Promise.all([task.refetch(), registry.refetch()])} />}
      </Page>
    );
  }
  return (
    <Page title="Edit and enqueue again" aside={<span className="muted">{task.data.name}</span>} crumbs={crumbs}>
      <Copy key={task.data.id} task={task.data} registry={registry.data} />
    </Page>
  );
}

function Copy({ task, registry }: { readonly task: wire.TaskDetail; readonly registry: wire.Registry }) {
  const registered = registry.items.find((each) => each.name === task.name || each.aliases.includes(task.name));
  const subject = useMemo<Subject>(
    () =>
      task.kind === "command"
        ? { kind: "command" }
        : { kind: "function", model: modelOf(registered?.schema), secrets: registered?.secrets ?? [] },
    [task.kind, registered],
  );
  const values = useMemo(() => readValues(task.arguments), [task.arguments]);
  // What is shown of them is not what they are.
  const kept = useMemo(() => Object.keys(values ?? {}).filter((name) => holdsRedacted(values?.[name]) || holdsInexact(values?.[name])), [values]);
  const command = commandDraftOf(task.arguments);
  const submit = useSubmit((copy: wire.Reenqueue, key) => reenqueueTask(task.id, copy, key));

  if (task.kind === "function" && registered === undefined) {
    return (
      <Empty title={`This server knows no task «${task.name}»`} action={<Link to={`/tasks/${task.id}`}>Back to the task</Link>}>
        A copy is checked by what the task takes, so it can be made where its app is: start the server with it, or retry the task as it is.
      </Empty>
    );
  }
  if (values === null || (task.kind === "command" && command === null)) {
    return (
      <Empty title="Its arguments cannot be read here" action={<Link to={`/tasks/${task.id}`}>Back to the task</Link>}>
        They are written in a way that this server does not know. It can be retried as it is.
      </Empty>
    );
  }
  const hasSecret = task.kind === "command" && holdsRedacted(task.arguments);
  return (
    <>
      <p className={styles.doc}>
        A new task, with what you change. Task <Link to={`/tasks/${task.id}`}>{task.id}</Link> stays as it is
        {task.job !== null && "; the copy is of no job"}.
      </p>
      {hasSecret && (
        <p className={styles.doc}>
          Something in this command is secret and not shown (<code>[redacted]</code>): write it anew before you enqueue it.
        </p>
      )}
      <TaskForm
        subject={subject}
        values={values}
        command={command ?? NO_COMMAND}
        options={{ ...NO_OPTIONS, tags: task.tags.join(", ") }}
        kept={task.kind === "function" ? kept : []}
        queues={registry.queues}
        defaults={{ queue: task.queue, priority: task.priority }}
        isCopy
        submit={(filled) => submit(copyOf(task, filled))}
      />
    </>
  );
}

/** Arguments are given as a whole: what is kept of them is named. */
function copyOf(task: wire.TaskDetail, { call, command, keep, options }: Filled): wire.Reenqueue {
  const { unique: _, on_conflict: __, ...rest } = options;
  // Left out, tags are as they were.
  const tags = rest.tags ?? [];
  if (task.kind === "command") return { ...(command === null ? {} : { command }), ...rest, tags };
  return { args: [...call.args], kwargs: { ...call.kwargs }, ...(keep.length === 0 ? {} : { keep: [...keep] }), ...rest, tags };
}

function readValues(given: unknown): Readonly<Record<string, Json>> | null {
  if (given === null || given === undefined) return null;
  return typeof given === "object" && !Array.isArray(given) ? (given as Readonly<Record<string, Json>>) : null;
}
