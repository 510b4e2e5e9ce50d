import { useQuery } from "@tanstack/react-query";
import { Link, useNavigate, useParams } from "react-router";

import { api, call, useListing, type wire } from "@/api";
import { useMay } from "@/app/session";
import {
  Badge,
  Button,
  durationText,
  Empty,
  Fact,
  Facts,
  Json,
  localTime,
  Page,
  Problem,
  Section,
  Skeleton,
  Table,
  Time,
  useConfirm,
  type Column,
} from "@/ui";
import { EditIcon, PauseIcon, PlayIcon, RetryIcon, TrashIcon } from "@/ui/icons";
import { useQueryState } from "@/url/queryState";

import { usePausing, useRemove, useRunNow } from "./acts";
import { readCadence, viewerZone, wordsOf, zoneOf } from "./cadence";
import { EditSchedule } from "./ScheduleDialog";
import { RunBadge } from "./Runs";
import { CATCH_UP_WORDS, OVERLAP_WORDS } from "./rules";
import styles from "./Schedules.module.css";

const FIRES = 10;

export function Component() {
  const { name = "" } = useParams();
  const [asked, setAsked] = useQueryState("edit", "");
  const mayOperate = useMay()({ role: "operator", scope: "control" });
  const found = useQuery({
    queryKey: ["schedules", "one", name],
    queryFn: ({ signal }) =>
      call(api.GET("/api/v1/schedules/{name}", { signal, params: { path: { name }, query: { fires: FIRES } } })),
    refetchInterval: 5000,
  });
  const schedule = found.data;
  return (
    <Page
      title={name}
      crumbs={[{ title: "Schedules", to: "/schedules" }]}
      aside={schedule !== undefined && <Standing schedule={schedule} />}
      actions={mayOperate && schedule !== undefined && <Acts schedule={schedule} edit={() => setAsked("yes")} />}
    >
      {found.isPending && <Skeleton />}
      {found.error !== null && <Problem error={found.error} retry={() => void found.refetch()} />}
      {schedule !== undefined && <Shown schedule={schedule} />}
      {mayOperate && schedule !== undefined && asked !== "" && <EditSchedule schedule={schedule} close={() => setAsked("")} />}
    </Page>
  );
}

function Standing({ schedule }: { readonly schedule: wire.ScheduleShown }) {
  if (schedule.paused) return <Badge tone="warn">paused</Badge>;
  if (schedule.problem !== null) return <Badge tone="bad">does not fire</Badge>;
  return schedule.upcoming.length === 0 ? <Badge tone="ended">over</Badge> : <Badge tone="good">fires</Badge>;
}

function Acts({ schedule, edit }: { readonly schedule: wire.ScheduleShown; edit(): void }) {
  const { name, paused, declared_by: declaredBy } = schedule;
  const navigate = useNavigate();
  const confirm = useConfirm();
  const runNow = useRunNow();
  const pausing = usePausing();
  const remove = useRemove(() => void navigate("/schedules"));

  async function askAndRemove(): Promise<void> {
    const agreed = await confirm({
      title: `Remove ${name}?`,
      body:
        declaredBy === null
          ? "It and the list of its runs go for good. Tasks that it has enqueued stay."
          : `The code of ${declaredBy} declares it, and makes it again when it is started next. To stop it for longer, pause it, or take it out of the code.`,
      act: "Remove the schedule",
      danger: true,
    });
    if (agreed) remove.mutate(name);
  }

  return (
    <>
      <Button icon={<RetryIcon />} busy={runNow.isPending} onClick={() => runNow.mutate(name)}>
        Run now
      </Button>
      <Button
        icon={paused ? <PlayIcon /> : <PauseIcon />}
        kind={paused ? "primary" : "plain"}
        busy={pausing.isPending}
        onClick={() => pausing.mutate({ name, paused: !paused })}
      >
        {paused ? "Resume" : "Pause"}
      </Button>
      <Button icon={<EditIcon />} onClick={edit}>
        Edit
      </Button>
      <Button icon={<TrashIcon />} busy={remove.isPending} onClick={() => void askAndRemove()}>
        Remove
      </Button>
    </>
  );
}

function Shown({ schedule }: { readonly schedule: wire.ScheduleDetail }) {
  const cadence = readCadence(schedule.cadence);
  const zone = zoneOf(cadence);
  return (
    <>
      {schedule.problem !== null && (
        <div role="alert" className={styles.problem}>
          <strong>It does not fire.</strong> {schedule.problem}. Writing it anew takes it up again: edit it, or start its app.
        </div>
      )}
      <div className={styles.columns}>
        <Section title="When">
          <Facts>
            <Fact name="Fires">{wordsOf(schedule.when, cadence)}</Fact>
            {cadence?.kind === "cron" && (
              <Fact name="Cron">
                <code>{cadence.expression}</code>
              </Fact>
            )}
            {zone !== null && <Fact name="On the clocks of">{zone}</Fact>}
            {cadence?.kind === "every" && <Fact name="Interval">{durationText(cadence.seconds)}</Fact>}
            <Fact name="After a time without a scheduler">
              {CATCH_UP_WORDS[schedule.catch_up]}
              {schedule.catch_up === "skip" && ` older than ${durationText(schedule.grace)}`}
            </Fact>
            <Fact name="While the last run is not over">{OVERLAP_WORDS[schedule.overlap]}</Fact>
            <Fact name="Put off by">{schedule.jitter === 0 ? "nothing" : `up to ${durationText(schedule.jitter)}, by chance`}</Fact>
          </Facts>
        </Section>
        <Section title="What">
          <div className="stack">
            <Facts>
              <Fact name="Task">
                <Link to={`/tasks?q=${encodeURIComponent(`name:${schedule.task}`)}`}>{schedule.task}</Link>
              </Fact>
              <Fact name="Queue">
                <Link to={`/queues/${encodeURIComponent(schedule.queue)}`}>{schedule.queue}</Link>
              </Fact>
              <Fact name="Made by">
                {schedule.declared_by === null ? "somebody, at run time" : `the code of ${schedule.declared_by}`}
              </Fact>
              <Fact name="Changed">
                <Time at={schedule.changed_at} />
              </Fact>
            </Facts>
            <Json value={schedule.arguments} label="arguments of each run" />
          </div>
        </Section>
      </div>
      <div className={styles.lists}>
        <section className={styles.part} aria-label="Next fires">
          <h2>Next fires</h2>
          <Upcoming schedule={schedule} zone={zone} />
        </section>
        <section className={styles.part} aria-label="Runs">
          <h2>Runs</h2>
          <Runs name={schedule.name} />
        </section>
      </div>
    </>
  );
}

/** On the viewer's clock; beside it that of its own zone, which says more to whoever wrote the schedule. */
function Upcoming({ schedule, zone }: { readonly schedule: wire.ScheduleShown; readonly zone: string | null }) {
  const here = viewerZone();
  const columns: Column<string>[] = [
    { id: "here", title: `Here (${here})`, cell: (at) => <Time at={at} form="full" /> },
    ...(zone === null || zone === here
      ? []
      : [{ id: "there", title: `There (${zone})`, cell: (at: string) => localTime(new Date(at), zone) }]),
    { id: "until", title: "From now", cell: (at) => <Time at={at} /> },
  ];
  const why = schedule.paused ? "It is paused" : schedule.problem !== null ? "It has to be mended" : "Its time is over";
  return (
    <Table
      label="Next fires"
      columns={columns}
      rows={schedule.upcoming}
      keyOf={(at) => at}
      empty={<Empty title="It does not fire again">{why}.</Empty>}
    />
  );
}

function Runs({ name }: { readonly name: string }) {
  const runs = useListing<wire.RunShown>(
    ["schedules", "runs", name],
    (cursor, signal) =>
      call(
        api.GET("/api/v1/schedules/{name}/runs", {
          signal,
          params: { path: { name }, query: { limit: 20, ...(cursor === null ? {} : { cursor }) } },
        }),
      ),
    { refreshEach: 5000 },
  );
  const columns: Column<wire.RunShown>[] = [
    { id: "tick", title: "For", cell: (run) => <Time at={run.tick} form="full" /> },
    { id: "status", title: "Outcome", cell: (run) => <RunBadge status={run.status} /> },
    {
      id: "task",
      title: "Task",
      cell: (run) => (run.task === null ? <span className="muted">none</span> : <Link to={`/tasks/${run.task}`}>{run.task}</Link>),
    },
    { id: "how", title: "How", cell: (run) => (run.manual ? "by hand" : "by the clock") },
    { id: "fired", title: "Fired", hide: "narrow", cell: (run) => <Time at={run.fired_at} /> },
  ];
  return (
    <Table
      label={`Runs of ${name}, newest first`}
      columns={columns}
      rows={runs.items}
      keyOf={(run) => `${run.tick} ${run.manual}`}
      listing={{ ...runs, isFetching: false }}
      empty={<Empty title="It has not run yet">Wait for its next fire, or run it now.</Empty>}
    />
  );
}
