import { useQuery } from "@tanstack/react-query";
import { Link, useParams } from "react-router";

import { api, call, type wire } from "@/api";
import {
  Badge,
  countText,
  Duration,
  durationText,
  Empty,
  Fact,
  Facts,
  Page,
  Problem,
  Progress,
  readProgress,
  Section,
  Skeleton,
  StateBadge,
  Table,
  Time,
  type Column,
} from "@/ui";

import { isSilent, nameOf } from "./beating";
import { Heartbeat } from "./Heartbeat";
import styles from "./Workers.module.css";

export function Component() {
  const { id = "" } = useParams();
  const found = useQuery({
    queryKey: ["workers", id],
    queryFn: ({ signal }) => call(api.GET("/api/v1/workers/{id}", { signal, params: { path: { id } } })),
    refetchInterval: 2000,
  });
  const worker = found.data;
  return (
    <Page
      title={worker === undefined ? id : nameOf(worker)}
      crumbs={[{ title: "Workers", to: "/workers" }]}
      aside={worker !== undefined && (isSilent(worker) ? <Badge tone="bad">silent</Badge> : <StateBadge state={worker.state} />)}
    >
      {found.isPending && <Skeleton />}
      {found.error !== null && <Problem error={found.error} retry={() => void found.refetch()} />}
      {worker !== undefined && <Shown worker={worker} saidAt={found.dataUpdatedAt} />}
    </Page>
  );
}

function Shown({ worker, saidAt }: { readonly worker: wire.WorkerDetail; readonly saidAt: number }) {
  return (
    <>
      {isSilent(worker) && (
        <p className={styles.warning} role="alert">
          It has not been heard of for longer than its lease of {durationText(worker.lease)}: other workers take over what it held.
          If it comes back, what it reports for those is refused.
        </p>
      )}
      <Section title="About it">
        <Facts>
          <Fact name="Heartbeat">
            {worker.state === "stopped" ? (
              <Time at={worker.last_heartbeat} />
            ) : (
              <Heartbeat age={worker.heartbeat_age} lease={worker.lease} saidAt={saidAt} />
            )}
          </Fact>
          <Fact name="Lease">{durationText(worker.lease)}</Fact>
          <Fact name="Host">{worker.hostname}</Fact>
          <Fact name="Process">{worker.pid}</Fact>
          <Fact name="Version">{worker.version}</Fact>
          <Fact name="Kind">{worker.kind}</Fact>
          <Fact name="Queues">
            {worker.queues.length === 0 ? (
              "every queue"
            ) : (
              <span className="cluster">
                {worker.queues.map((queue) => (
                  <Link key={queue} to={`/queues/${encodeURIComponent(queue)}`}>
                    {queue}
                  </Link>
                ))}
              </span>
            )}
          </Fact>
          <Fact name="Completed">{worker.tasks_completed.toLocaleString("en-US")}</Fact>
          <Fact name="Failed">{worker.tasks_failed.toLocaleString("en-US")}</Fact>
          <Fact name="Started">
            <Time at={worker.started_at} form="full" />
          </Fact>
          {worker.stopped_at !== null && (
            <Fact name="Stopped">
              <Time at={worker.stopped_at} form="full" />
            </Fact>
          )}
          <Fact name="Its id">
            <span className="mono">{worker.id}</span>
          </Fact>
        </Facts>
      </Section>
      <div className={styles.head}>
        <h2>What it holds</h2>
        <span className="cluster">
          <span className="muted">{countText(worker.holds)} now</span>
          <Link to={`/tasks?q=${encodeURIComponent(`worker:${worker.id}`)}`}>All of its tasks</Link>
        </span>
      </div>
      <Holding worker={worker} />
    </>
  );
}

function Holding({ worker }: { readonly worker: wire.WorkerDetail }) {
  const columns: Column<wire.TaskSummary>[] = [
    { id: "task", title: "Task", cell: (task) => `${task.id} ${task.label ?? task.name}` },
    { id: "state", title: "State", cell: (task) => <StateBadge state={task.state} reason={task.reason} /> },
    { id: "for", title: "For", cell: (task) => <Duration since={task.started_at} /> },
    { id: "progress", title: "Progress", wide: true, hide: "narrow", cell: (task) => <TaskProgress task={task} /> },
    { id: "queue", title: "Queue", cell: (task) => task.queue },
    { id: "attempt", title: "Attempt", align: "right", hide: "narrow", cell: (task) => `${task.attempt + 1} of ${task.max_attempts}` },
    { id: "owner", title: "Owner", hide: "medium", cell: (task) => task.owner ?? <span className="muted">–</span> },
  ];
  const isMore = worker.holds.more || worker.holds.n > worker.holding.length;
  return (
    <>
      <Table
        label="Tasks that it holds"
        columns={columns}
        rows={worker.holding}
        keyOf={(task) => task.id}
        linkOf={(task) => `/tasks/${task.id}`}
        empty={
          worker.alive ? (
            <Empty title="It holds nothing">It takes the next task of its queues as soon as one is ready.</Empty>
          ) : (
            <Empty title="It holds nothing any more">What it held was finished or taken over.</Empty>
          )
        }
      />
      {isMore && worker.holding.length > 0 && (
        <p className="muted">The first {worker.holding.length} that you may see are shown, of {countText(worker.holds)}.</p>
      )}
    </>
  );
}

function TaskProgress({ task }: { readonly task: wire.TaskSummary }) {
  const progress = readProgress(task.progress);
  if (progress === null) return null;
  const of = progress.total === null ? "" : ` of ${progress.total.toLocaleString("en-US")}`;
  const text = [progress.value === null ? null : `${progress.value.toLocaleString("en-US")}${of}`, progress.message].filter(Boolean).join(" · ");
  return <Progress label={`Progress of task ${task.id}`} total={progress.total} value={progress.value ?? 0} text={text} />;
}
