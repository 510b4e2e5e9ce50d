import { lazy, Suspense, useCallback, useEffect, useMemo, useRef } from "react";
import { Link, useParams } from "react-router";

import type { wire } from "@/api";
import { Duration, Empty, Fact, Facts, Json, Page, Problem, Section, Skeleton, StateBadge, Tabs, Time, type Tone } from "@/ui";
import { useQueryState } from "@/url/queryState";

import { JobActions } from "./acts";
import { isOver, useJob, useOutline, type KnownJob } from "./following";
import { Glyph } from "./glyphs";
import { JobProgress } from "./JobProgress";
import { NO_OUTLINE, type Member } from "./outline";
import { usePages } from "./paging";
import { waitingOf } from "./progress";
import { readMembers } from "./reading";
import { hasEnded, sumOf } from "./states";
import { secondsOf } from "./times";
import styles from "./JobPage.module.css";

// What draws is loaded when it is looked at.
const loadGraph = () => import("./graph/GraphView");
const GraphView = lazy(loadGraph);
const GroupTable = lazy(() => import("./table/GroupTable"));
const GanttView = lazy(() => import("./gantt/GanttView"));
const JobLogs = lazy(() => import("./logs/JobLogs"));
const JobEvents = lazy(() => import("./events/JobEvents"));

const TABS = ["graph", "tasks", "gantt", "logs", "events", "details"] as const;
type TabId = (typeof TABS)[number];

export function Component() {
  const { id = "" } = useParams();
  const number = Number(id);
  if (!Number.isSafeInteger(number) || number < 1) {
    return (
      <Page title="Job" crumbs={[{ title: "Jobs", to: "/jobs" }]}>
        <Empty title={`${id} is no id of a job`} action={<Link to="/jobs">Go to the jobs</Link>}>
          Ids are whole numbers, as the list of jobs shows them.
        </Empty>
      </Page>
    );
  }
  // Another job is another page: nothing of the one before stays.
  return <JobPage key={number} id={number} />;
}

function JobPage({ id }: { readonly id: number }) {
  const [wanted, setTab] = useQueryState<TabId>("tab", "graph");
  const tab = TABS.includes(wanted) ? wanted : "graph";
  const [open, setOpen] = useQueryState("open", "");
  const unfolded = useMemo(() => new Set(open.split(",").filter((group) => group !== "")), [open]);
  const setUnfolded = useCallback((groups: ReadonlySet<string>) => setOpen([...groups].join(",")), [setOpen]);

  useEffect(() => {
    // Not only when the tasks are there: both are on their way at once.
    if (tab === "graph") void loadGraph();
  }, [tab]);

  const lookAgain = useRef<() => void>(() => undefined);
  const followed = useJob(
    id,
    useCallback(() => lookAgain.current(), []),
  );
  const { job } = followed;
  const live = job !== undefined && !isOver(job);
  const needsOutline = tab === "graph" || tab === "tasks";
  const outline = useOutline(id, needsOutline && job !== undefined ? job.total : null, live);
  const pages = usePages<Member>(
    `members ${id}`,
    (group, cursor, signal) => readMembers(id, group, cursor, signal),
    (member) => !hasEnded(member.state),
  );
  const { read } = outline;
  useEffect(() => {
    lookAgain.current = outline.changed;
  });
  const isFirst = useRef(true);
  useEffect(() => {
    if (read === undefined || read.outline.members !== null) return;
    // What the groups say has changed: so may have those of their members that are shown.
    if (!isFirst.current) void pages.again(unfolded);
    isFirst.current = false;
    // Not when something is unfolded: that is read anyway.
  }, [read, pages]);

  if (job === undefined) {
    return (
      <Page title={`Job ${id}`} crumbs={[{ title: "Jobs", to: "/jobs" }]}>
        {followed.problem === null ? (
          <Skeleton />
        ) : (
          <Problem error={followed.problem} title={`Job ${id} could not be read`} retry={followed.refresh} />
        )}
      </Page>
    );
  }
  const known = read?.outline ?? NO_OUTLINE;
  return (
    <Page
      title={job.name}
      crumbs={[{ title: "Jobs", to: "/jobs" }]}
      aside={
        <>
          <StateBadge state={job.state} reason={job.reason} />
          <span className="muted">#{job.id}</span>
        </>
      }
      actions={<JobActions job={job} />}
    >
      <Summary job={job} waitingForApproval={sumOf(known.groups.map((group) => group.states)).pending_approval ?? 0} />
      {followed.problem !== null && (
        <Problem error={followed.problem} title="What is shown is not up to date" retry={followed.refresh} />
      )}
      <Tabs
        label="Views of this job"
        tabs={[
          { id: "graph", title: "Graph" },
          { id: "tasks", title: "Tasks", count: job.total },
          { id: "gantt", title: "Gantt" },
          { id: "logs", title: "Logs" },
          { id: "events", title: "Events" },
          { id: "details", title: "Details" },
        ]}
        active={tab}
        change={setTab}
      >
        <Suspense fallback={<Skeleton />}>
          {needsOutline && outline.problem !== null && (
            <Problem
              error={outline.problem}
              title={read === undefined ? "The tasks of this job could not be read" : "What is shown is not up to date"}
              retry={outline.refresh}
            />
          )}
          {needsOutline && read === undefined && outline.problem === null && <Skeleton lines={10} />}
          {tab === "graph" && read !== undefined && (
            <WithTasks job={job}>
              <GraphView
                jobId={id}
                jobName={job.name}
                outline={known}
                unfolded={unfolded}
                setUnfolded={setUnfolded}
                pages={pages}
                live={live}
                showTable={() => setTab("tasks")}
              />
            </WithTasks>
          )}
          {tab === "tasks" && read !== undefined && (
            <WithTasks job={job}>
              <GroupTable jobId={id} outline={known} unfolded={unfolded} setUnfolded={setUnfolded} pages={pages} />
            </WithTasks>
          )}
          {tab === "gantt" && <GanttView job={job} />}
          {tab === "logs" && <JobLogs job={job} />}
          {tab === "events" && <JobEvents job={job} />}
          {tab === "details" && <Details job={job} />}
        </Suspense>
      </Tabs>
    </Page>
  );
}

function WithTasks({ job, children }: { readonly job: wire.JobShown; readonly children: React.ReactNode }) {
  if (job.total > 0) return children;
  return (
    <Empty title="This job has no tasks">
      {isOver(job) ? "It ended before any was added to it." : "Add one here, or in Python with app.jobs.add(…)."}
    </Empty>
  );
}

interface SummaryProps {
  readonly job: wire.JobShown;
  readonly waitingForApproval: number;
}

function Summary({ job, waitingForApproval }: SummaryProps) {
  const over = isOver(job);
  return (
    <div className={styles.summary}>
      {job.description !== null && job.description !== "" && <p>{job.description}</p>}
      <div className={styles.progress}>
        <JobProgress job={job} name={job.name} />
      </div>
      <dl className={styles.facts}>
        <Figure name="Completed" tone="good">
          {job.completed.toLocaleString()}
        </Figure>
        <Figure name="Failed" tone="bad">
          {job.failed > 0 ? <Link to={tasksAddress(job.id, "failed")}>{job.failed.toLocaleString()}</Link> : "0"}
        </Figure>
        <Figure name="Cancelled" tone="ended">
          {job.cancelled.toLocaleString()}
        </Figure>
        <Figure name="Running" tone="active">
          {job.running.toLocaleString()}
        </Figure>
        <Figure name="Waiting" tone="waiting">
          {waitingOf(job).toLocaleString()}
        </Figure>
        <Figure name="Started">
          <Time at={job.started_at} />
        </Figure>
        <Figure name="Duration">
          <Duration seconds={secondsOf(job)} since={over ? null : job.started_at} />
        </Figure>
        {job.deadline_at !== null && !over && (
          <Figure name="Must end">
            <Time at={job.deadline_at} />
          </Figure>
        )}
        {job.run_no > 1 && <Figure name="Run">{job.run_no}</Figure>}
      </dl>
      {waitingForApproval > 0 && (
        <p className={styles.approval}>
          {waitingForApproval === 1 ? "1 task waits" : `${waitingForApproval.toLocaleString()} tasks wait`} for somebody to approve:{" "}
          <Link to={tasksAddress(job.id, "pending_approval")}>look at them</Link> or <Link to="/approvals">go to the approvals</Link>
        </p>
      )}
    </div>
  );
}

interface FigureProps {
  readonly name: string;
  readonly tone?: Tone;
  readonly children: React.ReactNode;
}

function Figure({ name, tone, children }: FigureProps) {
  return (
    <div>
      <dt>
        {tone !== undefined && (
          <span className={styles[tone]}>
            <Glyph tone={tone} size={12} />
          </span>
        )}
        {name}
      </dt>
      <dd>{children}</dd>
    </div>
  );
}

function tasksAddress(job: number, state: wire.TaskState): string {
  return `/tasks?${new URLSearchParams({ q: `job:${job} state:${state}` }).toString()}`;
}

function Details({ job }: { readonly job: KnownJob }) {
  const { hooks } = job;
  return (
    <div className="stack">
      <Section title="Times">
        <Facts>
          <Fact name="Created">
            <Time at={job.created_at} form="full" />
          </Fact>
          <Fact name="Started">
            <Time at={job.started_at} form="full" />
          </Fact>
          <Fact name="Ended">
            <Time at={job.completed_at} form="full" />
          </Fact>
          <Fact name="Deadline">
            <Time at={job.deadline_at} form="full" />
          </Fact>
          <Fact name="Owner">{job.owner ?? <span className="muted">nobody</span>}</Fact>
          <Fact name="Run">{job.run_no}</Fact>
          <Fact name="Reason">{job.reason === null ? <span className="muted">–</span> : job.reason.replaceAll("_", " ")}</Fact>
        </Facts>
      </Section>
      {hooks !== undefined && (
        <Section title="When it ends">
          <Facts>
            <Fact name="If it completes">
              <Hook hook={hooks.on_success} />
            </Fact>
            <Fact name="If it fails">
              <Hook hook={hooks.on_failure} />
            </Fact>
          </Facts>
        </Section>
      )}
      <Section title="Metadata">
        {isEmpty(job.metadata) ? (
          <p className="muted">None was given with the job.</p>
        ) : (
          <Json value={job.metadata} label="Metadata of the job" />
        )}
      </Section>
    </div>
  );
}

const HOOK_WORDS: Readonly<Record<wire.HookShown["status"], string>> = {
  waiting: "waits for the end",
  enqueued: "was enqueued",
  passed_over: "does not run: it ended otherwise",
};

/** The job does not know which task it became: the link shows those of the name, the newest first. */
function Hook({ hook }: { readonly hook: wire.HookShown | null }) {
  if (hook === null) return <span className="muted">nothing runs</span>;
  const name = /[\s",\\]/.test(hook.task) ? JSON.stringify(hook.task) : hook.task;
  return (
    <>
      <Link to={`/tasks?${new URLSearchParams({ q: `name:${name}` }).toString()}`}>{hook.task}</Link>{" "}
      <span className="muted">{HOOK_WORDS[hook.status]}</span>
    </>
  );
}

function isEmpty(value: unknown): boolean {
  return value === null || value === undefined || (typeof value === "object" && Object.keys(value).length === 0);
}
