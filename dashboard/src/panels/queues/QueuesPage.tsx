import { useQuery } from "@tanstack/react-query";

import { api, call } from "@/api";
import { useMay } from "@/app/session";
import { Badge, depthText, Empty, IconButton, Page, shortNumber, Table, type Column } from "@/ui";
import { PauseIcon, PlayIcon } from "@/ui/icons";

import { Counted } from "./Counted";
import { depthOf, rateText, type Queue } from "./figures";
import { Ratio } from "./Lanes";
import styles from "./Queues.module.css";
import { usePausing, useQueues } from "./useQueues";

export function Component() {
  const { queues, isPending, error, seenAt, retry } = useQueues();
  const mayOperate = useMay()({ role: "operator", scope: "control" });
  const pausing = usePausing();
  const recent = useQuery({
    queryKey: ["overview", "5m"],
    queryFn: ({ signal }) => call(api.GET("/api/v1/overview", { signal, params: { query: { range: "5m" } } })),
    refetchInterval: 10_000,
  });
  const rates = new Map(recent.data?.finished.queues.map((queue) => [queue.queue, queue.per_second]));

  const columns: Column<Queue>[] = [
    {
      id: "name",
      title: "Queue",
      cell: (queue) => <span className={styles.name}>{queue.name}</span>,
    },
    {
      id: "state",
      title: "State",
      cell: (queue) => <State queue={queue} />,
    },
    { id: "primary", title: "New", align: "right", cell: (queue) => <Depth depth={depthOf(queue.depths, "primary")} /> },
    { id: "retry", title: "Retries", align: "right", cell: (queue) => <Depth depth={depthOf(queue.depths, "retry")} /> },
    { id: "ratio", title: "New : retries", hide: "medium", cell: (queue) => <Ratio retry={queue.retry_ratio} /> },
    {
      id: "running",
      title: "Running",
      align: "right",
      cell: (queue) => <Depth depth={depthOf(queue.depths, "claimed", "running")} />,
    },
    {
      id: "scheduled",
      title: "Not due",
      align: "right",
      hide: "narrow",
      cell: (queue) => <Depth depth={depthOf(queue.depths, "scheduled")} />,
    },
    {
      id: "waiting",
      title: "Waiting",
      align: "right",
      hide: "medium",
      cell: (queue) => <Depth depth={depthOf(queue.depths, "waiting")} />,
    },
    {
      id: "rate",
      title: "Ended, 5 min",
      align: "right",
      hide: "medium",
      cell: (queue) => <PerSecond value={rates.get(queue.name)} />,
    },
    { id: "limits", title: "Limits", cell: (queue) => <Limits queue={queue} /> },
  ];
  if (mayOperate) {
    columns.push({
      id: "act",
      title: "Act",
      align: "right",
      cell: (queue) => {
        const isBusy = pausing.isPending && pausing.variables.name === queue.name;
        return (
          <IconButton
            label={queue.paused ? `Resume ${queue.name}` : `Pause ${queue.name}`}
            icon={queue.paused ? <PlayIcon /> : <PauseIcon />}
            busy={isBusy}
            onClick={() => pausing.mutate({ name: queue.name, paused: !queue.paused })}
          />
        );
      },
    });
  }

  return (
    <Page title="Queues" aside={<Counted at={seenAt} />}>
      <Table
        label="Queues"
        columns={columns}
        rows={queues}
        keyOf={(queue) => queue.name}
        linkOf={(queue) => `/queues/${encodeURIComponent(queue.name)}`}
        listing={{
          isPending,
          isFetching: false,
          problem: error,
          hasMore: false,
          isLoadingMore: false,
          more: () => undefined,
          refresh: retry,
        }}
        empty={
          <Empty title="No queue has anything">
            A queue appears with its first task: enqueue one, or give a task a queue of its own with <code>@app.task(queue="mail")</code>.
          </Empty>
        }
      />
    </Page>
  );
}

function State({ queue }: { readonly queue: Queue }) {
  if (queue.paused) {
    return (
      <Badge tone="warn" title="No worker starts its tasks until it is resumed">
        paused
      </Badge>
    );
  }
  if (depthOf(queue.depths, "claimed", "running") > 0) return <Badge tone="active">working</Badge>;
  if (depthOf(queue.depths, "primary", "retry") > 0) {
    return (
      <Badge tone="waiting" title="Tasks are ready, and no worker has taken one yet">
        ready
      </Badge>
    );
  }
  return <Badge tone="ended">quiet</Badge>;
}

function Depth({ depth }: { readonly depth: number }) {
  return depth === 0 ? <span className="muted">0</span> : depthText(depth);
}

function PerSecond({ value }: { readonly value: number | undefined }) {
  return value === undefined ? <span className="muted">0/s</span> : `${shortNumber(value)}/s`;
}

function Limits({ queue }: { readonly queue: Queue }) {
  const said = [
    ...(queue.limit === null ? [] : [`${queue.limit.toLocaleString("en-US")} at once`]),
    ...(queue.rate === null ? [] : [rateText(queue.rate)]),
  ];
  return said.length === 0 ? <span className="muted">none</span> : said.join(" · ");
}
