import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { Link } from "react-router";

import { api, call, type wire } from "@/api";
import { Empty, Page, Problem, Select, Skeleton } from "@/ui";
import { useQueryState } from "@/url/queryState";

import { EndedChart, LatencyCharts, LoadChart } from "./Charts";
import { FailingErrors } from "./FailingErrors";
import { isRange, OUTCOMES, RANGE_TITLES, RANGES, runningOf, waitingOf, withMinutes, type Range } from "./figures";
import { useHistory } from "./history";
import styles from "./Overview.module.css";
import { QueueDepths } from "./QueueDepths";
import { StateCounts } from "./StateCounts";
import { Summary } from "./Summary";
import { TaskNames } from "./TaskNames";

/** What the live figures do not hold (percentiles, failures) is asked for again, less often where it changes less. */
const REFRESH_EACH: Readonly<Record<Range, number>> = { "5m": 5_000, "1h": 10_000, "24h": 30_000, "7d": 60_000 };

export function Component() {
  const [text, setRange] = useQueryState("range", "1h");
  const range: Range = isRange(text) ? text : "1h";
  const { samples, latest } = useHistory();
  const overview = useQuery({
    queryKey: ["overview", range],
    queryFn: ({ signal }) => call(api.GET("/api/v1/overview", { signal, params: { query: { range } } })),
    refetchInterval: REFRESH_EACH[range],
    placeholderData: keepPreviousData,
  });
  return (
    <Page
      title="Overview"
      actions={
        <Select
          label="Time range"
          quiet
          value={range}
          change={setRange}
          options={RANGES.map((value) => ({ value, label: RANGE_TITLES[value] }))}
        />
      }
    >
      {overview.error !== null && (
        <Problem
          title={overview.data === undefined ? "The figures could not be read" : "The figures are not up to date"}
          error={overview.error}
          retry={() => void overview.refetch()}
        />
      )}
      {overview.isPending && <Skeleton lines={10} />}
      {overview.data !== undefined && <Figures shown={withMinutes(overview.data, latest)} latest={latest} samples={samples} />}
    </Page>
  );
}

type Seen = ReturnType<typeof useHistory>;

function Figures({ shown, latest, samples }: { readonly shown: wire.OverviewShown } & Seen) {
  const isIdle = isQuiet(shown) && (latest === undefined || waitingOf(latest.queues) + runningOf(latest.states) === 0);
  // Of a ledger where nothing happens just now only the list of tasks knows whether anything ever did.
  const first = useQuery({
    queryKey: ["tasks", "first"],
    queryFn: ({ signal }) => call(api.GET("/api/v1/tasks", { signal, params: { query: { limit: 1 } } })),
    enabled: isIdle,
  });
  if (isIdle && first.isPending) return <Skeleton lines={10} />;
  if (isIdle && first.data?.items.length === 0) return <Beginning workers={shown.workers.alive} />;
  return (
    <>
      <Summary shown={shown} latest={latest} samples={samples} />
      <div className={styles.charts}>
        <EndedChart shown={shown} samples={samples} />
        <LoadChart shown={shown} samples={samples} />
        <LatencyCharts shown={shown} />
      </div>
      <QueueDepths queues={latest?.queues ?? shown.queues} finished={shown.finished.queues} />
      <div className={styles.pair}>
        <FailingErrors failing={shown.failing} range={shown.range} />
        <div className="stack">
          <StateCounts counted={shown.states} live={latest?.states} />
          <TaskNames names={shown.finished.names} range={shown.range} />
        </div>
      </div>
    </>
  );
}

/** Nothing waits, runs or has ended in this range. */
function isQuiet({ queues, states, finished }: wire.OverviewShown): boolean {
  return (
    waitingOf(queues) === 0 &&
    Object.values(states).every((count) => count.n === 0) &&
    OUTCOMES.every((outcome) => finished.totals[outcome] === 0)
  );
}

function Beginning({ workers }: { readonly workers: number }) {
  return (
    <Empty title="Nothing was enqueued yet">
      <p>
        {workers === 0
          ? "No worker runs, either. Start one with headrace worker tasks:app, or everything with headrace up tasks:app."
          : `${workers === 1 ? "One worker is" : `${workers} workers are`} waiting for the first task.`}
      </p>
      <p>
        Enqueue one in Python with <code>welcome.enqueue(user_id=7)</code>, from a shell with{" "}
        <code>headrace enqueue tasks:app tasks.welcome user_id=7</code>, or <Link to="/tasks/new">here</Link>.
      </p>
    </Empty>
  );
}
