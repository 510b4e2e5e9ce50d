import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { Link } from "react-router";

import { api, call, type wire } from "@/api";
import { Button, countText, Duration, Empty, Page, Problem, Skeleton, StateBadge, Table, Time, type Column } from "@/ui";

import { byWorker, crowdText, nameOf, parted, queuesText } from "./beating";
import { Heartbeat } from "./Heartbeat";
import styles from "./Workers.module.css";

const EACH = 3000;
const HELD = 200;
const SHOWN_STOPPED = 10;

export function Component() {
  const workers = useQuery({
    queryKey: ["workers"],
    queryFn: ({ signal }) => call(api.GET("/api/v1/workers", { signal })),
    refetchInterval: EACH,
  });
  // One question for all of them: what is in anybody's hands.
  const held = useQuery({
    queryKey: ["tasks", "held"],
    queryFn: ({ signal }) =>
      call(api.GET("/api/v1/tasks", { signal, params: { query: { status: ["running", "claimed"], limit: HELD } } })),
    refetchInterval: EACH,
  });
  const { working, silent, stopped } = parted(workers.data ?? []);
  const tasks = byWorker(held.data?.items ?? []);
  const shown = { tasks, saidAt: workers.dataUpdatedAt };
  return (
    <Page
      title="Workers"
      aside={workers.data !== undefined && <span className="muted">{crowdText(working)}</span>}
    >
      {workers.isPending && <Skeleton />}
      {workers.error !== null && <Problem error={workers.error} retry={() => void workers.refetch()} />}
      {workers.data !== undefined && (
        <>
          {silent.length > 0 && <Silent workers={silent} {...shown} />}
          <Working workers={working} {...shown} />
          {stopped.length > 0 && <Stopped workers={stopped} />}
        </>
      )}
    </Page>
  );
}

interface ShownWorkers {
  readonly workers: readonly wire.WorkerShown[];
  readonly tasks: ReadonlyMap<string, readonly wire.TaskSummary[]>;
  readonly saidAt: number;
}

const linkOf = (worker: wire.WorkerShown): string => `/workers/${encodeURIComponent(worker.id)}`;

function Working({ workers, tasks, saidAt }: ShownWorkers) {
  const columns: Column<wire.WorkerShown>[] = [
    { id: "name", title: "Worker", cell: nameOf },
    { id: "state", title: "State", cell: (worker) => <StateBadge state={worker.state} /> },
    {
      id: "beat",
      title: "Heartbeat",
      cell: (worker) => <Heartbeat age={worker.heartbeat_age} lease={worker.lease} saidAt={saidAt} />,
    },
    { id: "holds", title: "Holds", align: "right", cell: (worker) => countText(worker.holds) },
    { id: "runs", title: "Runs", wide: true, cell: (worker) => <Held tasks={tasks.get(worker.id) ?? []} /> },
    { id: "queues", title: "Queues", hide: "medium", cell: (worker) => queuesText(worker.queues) },
    { id: "done", title: "Completed", align: "right", hide: "medium", cell: (worker) => worker.tasks_completed.toLocaleString("en-US") },
    { id: "failed", title: "Failed", align: "right", hide: "medium", cell: (worker) => worker.tasks_failed.toLocaleString("en-US") },
    { id: "version", title: "Version", hide: "medium", cell: (worker) => worker.version },
    { id: "up", title: "Up for", hide: "narrow", cell: (worker) => <Duration since={worker.started_at} /> },
  ];
  return (
    <Table
      label="Workers that are heard of"
      columns={columns}
      rows={workers}
      keyOf={(worker) => worker.id}
      linkOf={linkOf}
      empty={
        <Empty title="No worker is there">
          Nothing runs until one is started: <code>headrace worker tasks:app</code>, or <code>headrace up tasks:app</code> with
          everything in one.
        </Empty>
      }
    />
  );
}

/** The first of what it holds, and how long each runs. */
function Held({ tasks }: { readonly tasks: readonly wire.TaskSummary[] }) {
  const [first, ...others] = tasks;
  if (first === undefined) return <span className="muted">nothing</span>;
  return (
    <span title={tasks.map((task) => `${task.id} ${task.label ?? task.name}`).join("\n")}>
      <Link to={`/tasks/${first.id}`}>{first.label ?? first.name}</Link>{" "}
      {first.started_at !== null && (
        <span className="muted">
          for <Duration since={first.started_at} />
        </span>
      )}
      {others.length > 0 && <span className="muted"> and {others.length} more</span>}
    </span>
  );
}

function Silent({ workers, saidAt }: ShownWorkers) {
  const columns: Column<wire.WorkerShown>[] = [
    { id: "name", title: "Worker", cell: nameOf },
    {
      id: "beat",
      title: "Heartbeat",
      cell: (worker) => <Heartbeat age={worker.heartbeat_age} lease={worker.lease} saidAt={saidAt} />,
    },
    { id: "holds", title: "Still holds", align: "right", cell: (worker) => countText(worker.holds) },
    { id: "queues", title: "Queues", hide: "narrow", cell: (worker) => queuesText(worker.queues) },
    { id: "version", title: "Version", hide: "narrow", cell: (worker) => worker.version },
    { id: "up", title: "Started", cell: (worker) => <Time at={worker.started_at} /> },
  ];
  return (
    <section className={styles.silent} aria-label="Workers that are silent">
      <h2>Silent</h2>
      <p className="muted">
        Not heard of for longer than their lease: killed, cut off, or without their database. Other workers take over what they held.
      </p>
      <Table label="Workers that are silent" columns={columns} rows={workers} keyOf={(worker) => worker.id} linkOf={linkOf} empty={null} />
    </section>
  );
}

function Stopped({ workers }: { readonly workers: readonly wire.WorkerShown[] }) {
  const [all, setAll] = useState(false);
  const columns: Column<wire.WorkerShown>[] = [
    { id: "name", title: "Worker", cell: nameOf },
    { id: "stopped", title: "Stopped", cell: (worker) => <Time at={worker.stopped_at ?? worker.last_heartbeat} /> },
    { id: "started", title: "Started", cell: (worker) => <Time at={worker.started_at} /> },
    { id: "done", title: "Completed", align: "right", cell: (worker) => worker.tasks_completed.toLocaleString("en-US") },
    { id: "failed", title: "Failed", align: "right", cell: (worker) => worker.tasks_failed.toLocaleString("en-US") },
    { id: "version", title: "Version", hide: "narrow", cell: (worker) => worker.version },
  ];
  const rest = workers.length - SHOWN_STOPPED;
  return (
    <section className={styles.stopped} aria-label="Workers that stopped">
      <h2>Stopped</h2>
      <Table
        label="Workers that stopped"
        columns={columns}
        rows={all ? workers : workers.slice(0, SHOWN_STOPPED)}
        keyOf={(worker) => worker.id}
        linkOf={linkOf}
        empty={null}
      />
      {rest > 0 && !all && (
        <div>
          <Button onClick={() => setAll(true)}>Show {rest.toLocaleString("en-US")} more</Button>
        </div>
      )}
    </section>
  );
}
