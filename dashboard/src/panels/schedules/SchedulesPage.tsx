import { useQuery } from "@tanstack/react-query";

import { api, call, type wire } from "@/api";
import { useMay } from "@/app/session";
import { Badge, Button, Empty, IconButton, Page, Table, Time, type Column } from "@/ui";
import { PauseIcon, PlayIcon, PlusIcon, RetryIcon } from "@/ui/icons";
import { useQueryState } from "@/url/queryState";

import { usePausing, useRunNow } from "./acts";
import { readCadence, wordsOf, zoneOf } from "./cadence";
import { NewSchedule } from "./ScheduleDialog";
import { LastRuns } from "./Runs";
import styles from "./Schedules.module.css";

export function Component() {
  const [asked, setAsked] = useQueryState("new", "");
  const mayOperate = useMay()({ role: "operator", scope: "control" });
  const schedules = useQuery({
    queryKey: ["schedules", "list"],
    queryFn: ({ signal }) => call(api.GET("/api/v1/schedules", { signal, params: { query: { fires: 2, runs: 5 } } })),
    refetchInterval: 5000,
  });
  const runNow = useRunNow();
  const pausing = usePausing();

  const columns: Column<wire.ScheduleShown>[] = [
    { id: "name", title: "Schedule", cell: (schedule) => <span className={styles.name}>{schedule.name}</span> },
    { id: "when", title: "When", wide: true, cell: (schedule) => <When schedule={schedule} /> },
    { id: "next", title: "Next", cell: (schedule) => <Next schedule={schedule} /> },
    { id: "runs", title: "Last runs", cell: (schedule) => <LastRuns runs={schedule.last_runs} /> },
    { id: "task", title: "Task", hide: "narrow", cell: (schedule) => schedule.task },
    { id: "queue", title: "Queue", hide: "medium", cell: (schedule) => schedule.queue },
  ];
  if (mayOperate) {
    columns.push({
      id: "act",
      title: "Act",
      align: "right",
      cell: ({ name, paused }) => (
        <span className={styles.acts}>
          <IconButton
            label={`Run ${name} now`}
            icon={<RetryIcon />}
            busy={runNow.isPending && runNow.variables === name}
            onClick={() => runNow.mutate(name)}
          />
          <IconButton
            label={paused ? `Resume ${name}` : `Pause ${name}`}
            icon={paused ? <PlayIcon /> : <PauseIcon />}
            busy={pausing.isPending && pausing.variables.name === name}
            onClick={() => pausing.mutate({ name, paused: !paused })}
          />
        </span>
      ),
    });
  }

  const makeOne = mayOperate && (
    <Button kind="primary" icon={<PlusIcon />} onClick={() => setAsked("yes")}>
      New schedule
    </Button>
  );
  return (
    <Page title="Schedules" actions={makeOne}>
      <Table
        label="Schedules"
        columns={columns}
        rows={schedules.data ?? []}
        keyOf={(schedule) => schedule.name}
        linkOf={(schedule) => `/schedules/${encodeURIComponent(schedule.name)}`}
        listing={{
          isPending: schedules.isPending,
          isFetching: false,
          problem: schedules.error,
          hasMore: false,
          isLoadingMore: false,
          more: () => undefined,
          refresh: () => void schedules.refetch(),
        }}
        empty={
          <Empty title="Nothing runs on a schedule">
            Declare one above a task, <code>@app.schedule("30 2 * * *")</code>, or make one here.
          </Empty>
        }
      />
      {mayOperate && asked !== "" && <NewSchedule close={() => setAsked("")} />}
    </Page>
  );
}

function When({ schedule }: { readonly schedule: wire.ScheduleShown }) {
  const cadence = readCadence(schedule.cadence);
  const zone = zoneOf(cadence);
  return (
    <span className={styles.when}>
      <span>{wordsOf(schedule.when, cadence)}</span>
      {cadence?.kind === "cron" && (
        <span className="muted">
          <code>{cadence.expression}</code> {zone}
        </span>
      )}
    </span>
  );
}

function Next({ schedule }: { readonly schedule: wire.ScheduleShown }) {
  if (schedule.paused) return <Badge tone="warn">paused</Badge>;
  if (schedule.problem !== null) {
    return (
      <Badge tone="bad" title={schedule.problem}>
        does not fire
      </Badge>
    );
  }
  const [next] = schedule.upcoming;
  return next === undefined ? <span className="muted">never again</span> : <Time at={next} />;
}
