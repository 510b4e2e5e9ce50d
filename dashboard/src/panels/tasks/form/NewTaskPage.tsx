import { useQuery } from "@tanstack/react-query";
import { useMemo, useState } from "react";
import { Link, useSearchParams } from "react-router";

import type { wire } from "@/api";
import { useMay } from "@/app/session";
import { Badge, Empty, Input, Page, Problem, Skeleton } from "@/ui";

import { getRegistry, submitTask } from "../requests";
import { NO_COMMAND } from "./command";
import styles from "./Form.module.css";
import { modelOf } from "./model";
import { NO_OPTIONS } from "./options";
import { TaskForm, type Filled } from "./TaskForm";
import { useSubmit } from "./useSubmit";

const CRUMBS = [{ title: "Tasks", to: "/tasks" }];

export function Component() {
  const [parameters] = useSearchParams();
  const may = useMay();
  const registry = useQuery({ queryKey: ["registry"], queryFn: ({ signal }) => getRegistry(signal), staleTime: 60_000 });
  const name = parameters.get("name");
  const isCommand = parameters.has("command");

  if (!may({ role: "user", scope: "submit" })) {
    return (
      <Page title="New task" crumbs={CRUMBS}>
        <Empty title="Your role does not reach this">To enqueue tasks needs the role user; an admin can give it to you.</Empty>
      </Page>
    );
  }
  if (registry.data === undefined) {
    return (
      <Page title="New task" crumbs={CRUMBS}>
        {registry.error === null ? <Skeleton /> : <Problem error={registry.error} retry={() => void registry.refetch()} />}
      </Page>
    );
  }
  if (isCommand) return <NewCommand registry={registry.data} />;
  if (name === null) return <Choose registry={registry.data} />;
  const registered = registry.data.items.find((each) => each.name === name || each.aliases.includes(name));
  if (registered === undefined) {
    return (
      <Page title="New task" crumbs={[...CRUMBS, { title: "New task", to: "/tasks/new" }]}>
        <Empty title={`This server knows no task «${name}»`} action={<Link to="/tasks/new">Choose another</Link>}>
          It knows the tasks of the app that it was started with: <code>headrace up tasks:app</code>.
        </Empty>
      </Page>
    );
  }
  return <NewTask key={registered.name} registered={registered} registry={registry.data} />;
}

function Choose({ registry }: { readonly registry: wire.Registry }) {
  const [text, setText] = useState("");
  const words = text.toLowerCase().split(/\s+/);
  const mine = registry.items.filter((each) => each.can_submit);
  const found = mine.filter((each) => {
    const said = `${each.name} ${each.aliases.join(" ")} ${each.summary ?? ""} ${each.queue}`.toLowerCase();
    return words.every((word) => said.includes(word));
  });
  return (
    <Page title="New task" crumbs={CRUMBS}>
      {mine.length === 0 && !registry.commands ? (
        <Empty title="This server knows no tasks that you may enqueue">
          It knows the tasks of the app that it was started with: <code>headrace up tasks:app</code>.
        </Empty>
      ) : (
        <div className={styles.form}>
          {mine.length > 8 && (
            <Input label="Find a task" autoFocus type="search" autoComplete="off" value={text} onChange={(event) => setText(event.target.value)} />
          )}
          <ul className={styles.choices} aria-label="Tasks">
            {found.map((each) => (
              <li key={each.name}>
                <Link className={styles.choice} to={`/tasks/new?name=${encodeURIComponent(each.name)}`}>
                  <strong>{each.name}</strong>
                  <span className="muted">{each.summary}</span>
                  <span className={styles.where}>
                    {each.needs_approval && "needs approval · "}
                    {each.queue}
                  </span>
                </Link>
              </li>
            ))}
            {registry.commands && text === "" && (
              <li>
                <Link className={styles.choice} to="/tasks/new?command">
                  <strong>A command</strong>
                  <span className="muted">Any program on a worker</span>
                  <span className={styles.where}>{registry.commands_need_approval && "needs approval"}</span>
                </Link>
              </li>
            )}
          </ul>
          {found.length === 0 && text !== "" && <p className="muted">No task is called like that.</p>}
        </div>
      )}
    </Page>
  );
}

function NewTask({ registered, registry }: { readonly registered: wire.Registered; readonly registry: wire.Registry }) {
  const model = useMemo(() => modelOf(registered.schema), [registered.schema]);
  const submit = useSubmit(submitTask);
  return (
    <Page
      title={registered.name}
      aside={registered.needs_approval ? <Badge tone="warn">waits for approval first</Badge> : undefined}
      crumbs={[...CRUMBS, { title: "New task", to: "/tasks/new" }]}
    >
      <div className={styles.form}>
        {registered.doc !== null && <p className={styles.doc}>{registered.doc}</p>}
        <details className={styles.signature}>
          <summary>Signature</summary>
          <code>
            {registered.name}
            {registered.signature}
          </code>
        </details>
        {!registered.complete && <p className="muted">Not every type here has a description; where it has none, any JSON may be given, and the server checks it.</p>}
      </div>
      <TaskForm
        subject={{ kind: "function", model, secrets: registered.secrets }}
        values={{}}
        command={NO_COMMAND}
        options={NO_OPTIONS}
        kept={[]}
        queues={registry.queues}
        defaults={{ queue: registered.queue, priority: registered.priority }}
        isCopy={false}
        submit={({ call, options }) => submit({ name: registered.name, args: [...call.args], kwargs: { ...call.kwargs }, ...options })}
      />
    </Page>
  );
}

function NewCommand({ registry }: { readonly registry: wire.Registry }) {
  const submit = useSubmit(submitTask);
  const send = ({ command, options }: Filled): Promise<wire.Submitted> => submit({ command, args: [], kwargs: {}, ...options });
  return (
    <Page
      title="New command"
      aside={registry.commands_need_approval ? <Badge tone="warn">waits for approval first</Badge> : undefined}
      crumbs={[...CRUMBS, { title: "New task", to: "/tasks/new" }]}
    >
      <TaskForm
        subject={{ kind: "command" }}
        values={{}}
        command={NO_COMMAND}
        options={NO_OPTIONS}
        kept={[]}
        queues={registry.queues}
        defaults={{ queue: "default", priority: 0 }}
        isCopy={false}
        submit={send}
      />
    </Page>
  );
}
