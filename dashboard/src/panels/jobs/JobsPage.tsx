import { useCallback, useRef, useState, type FormEvent } from "react";
import { useSearchParams } from "react-router";

import { api, call, useListing, type wire } from "@/api";
import { useMay } from "@/app/session";
import { useLiveMessages } from "@/live";
import { Button, Code, Duration, Empty, Input, Page, StateBadge, Table, Time, wordsOf, type Column } from "@/ui";
import { classes } from "@/ui/classes";
import { useQueryList, useQueryState } from "@/url/queryState";

import { isOver } from "./following";
import { JobProgress } from "./JobProgress";
import { secondsOf } from "./times";
import styles from "./JobsPage.module.css";

const STATES = ["pending", "running", "completed", "failed", "cancelled"] as const satisfies readonly wire.JobState[];
const REFRESH_EACH = 5000;

const COLUMNS: readonly Column<wire.JobShown>[] = [
  { id: "name", title: "Job", wide: true, cell: (job) => <JobName job={job} /> },
  { id: "state", title: "State", cell: (job) => <StateBadge state={job.state} reason={job.reason} /> },
  { id: "progress", title: "Progress", cell: (job) => <div className={styles.progress}><JobProgress job={job} name={job.name} /></div> },
  {
    id: "failed",
    title: "Failed",
    align: "right",
    cell: (job) => (job.failed > 0 ? <span className={styles.failed}>{job.failed.toLocaleString()}</span> : "0"),
  },
  { id: "created", title: "Created", hide: "medium", cell: (job) => <Time at={job.created_at} /> },
  {
    id: "took",
    title: "Duration",
    align: "right",
    cell: (job) => <Duration seconds={secondsOf(job)} since={isOver(job) ? null : job.started_at} />,
  },
  { id: "owner", title: "Owner", hide: "medium", cell: (job) => job.owner ?? <span className="muted">–</span> },
];

export function Component() {
  const may = useMay();
  const [chosen, setChosen] = useQueryList("state");
  const [owner, setOwner] = useQueryState("owner", "");
  const [text, setText] = useQueryState("text", "");
  const [, setParameters] = useSearchParams();
  const states = STATES.filter((state) => chosen.includes(state));
  const jobs = useListing<wire.JobShown>(
    ["jobs", { states, owner, text }],
    (cursor, signal) =>
      call(
        api.GET("/api/v1/jobs", {
          signal,
          params: {
            query: {
              limit: 50,
              ...(states.length > 0 ? { state: states } : {}),
              ...(owner === "" ? {} : { owner }),
              ...(text === "" ? {} : { text }),
              ...(cursor === null ? {} : { cursor }),
            },
          },
        }),
      ),
    { refreshEach: REFRESH_EACH },
  );
  useRefreshWhenTasksChange(jobs.refresh);
  const isFiltered = states.length > 0 || owner !== "" || text !== "";

  function toggle(state: wire.JobState): void {
    setChosen(states.includes(state) ? states.filter((each) => each !== state) : [...states, state]);
  }

  return (
    <Page title="Jobs">
      <div className={styles.filters}>
        <div className={styles.states} role="group" aria-label="States">
          {STATES.map((state) => (
            <button
              key={state}
              type="button"
              aria-pressed={states.includes(state)}
              className={classes(styles.state, states.includes(state) && styles.chosen)}
              onClick={() => toggle(state)}
            >
              {wordsOf(state)}
            </button>
          ))}
        </div>
        <Sought label="Name" placeholder="Name or id" value={text} change={setText} />
        {may({ overseer: true }) && <Sought label="Owner" placeholder="Owner" value={owner} change={setOwner} />}
        {isFiltered && (
          <Button kind="quiet" onClick={() => setParameters(new URLSearchParams(), { replace: true })}>
            Clear filters
          </Button>
        )}
      </div>
      <Table
        label="Jobs"
        columns={COLUMNS}
        rows={jobs.items}
        keyOf={(job) => job.id}
        linkOf={(job) => `/jobs/${job.id}`}
        listing={jobs}
        empty={jobs.hasMore ? <NotYet /> : isFiltered ? <NoneFound /> : <NoneYet />}
      />
    </Page>
  );
}

function JobName({ job }: { readonly job: wire.JobShown }) {
  return (
    <span title={job.description ?? undefined}>
      {job.name} <span className="muted">#{job.id}</span>
    </span>
  );
}

interface SoughtProps {
  readonly label: string;
  readonly placeholder: string;
  readonly value: string;
  change(value: string): void;
}

/** Is looked for when it is entered, not with every letter: owners are found by their whole names alone. */
function Sought({ label, placeholder, value, change }: SoughtProps) {
  const [typed, setTyped] = useState<string | null>(null);
  function enter(event?: FormEvent): void {
    event?.preventDefault();
    if (typed !== null && typed.trim() !== value) change(typed.trim());
    setTyped(null);
  }
  return (
    <form onSubmit={enter} className={styles.sought}>
      <Input
        label={label}
        quiet
        placeholder={placeholder}
        type="search"
        value={typed ?? value}
        onChange={(event) => {
          setTyped(event.target.value);
          if (event.target.value === "") change("");
        }}
        onBlur={() => enter()}
      />
    </form>
  );
}

/** A job changes when a task does; the list is asked for again, but not more often than one can read. */
function useRefreshWhenTasksChange(refresh: () => void): void {
  const at = useRef(0);
  const latest = useRef(refresh);
  latest.current = refresh;
  useLiveMessages(
    { kind: "tasks" },
    useCallback(() => {
      const now = Date.now();
      if (now - at.current < 2000) return;
      at.current = now;
      latest.current();
    }, []),
  );
}

/** A look by words has a time: what it did not come to is behind «Show more». */
function NotYet() {
  return <Empty title="None among the newest jobs">There are older ones that were not looked at yet: show more.</Empty>;
}

function NoneFound() {
  return <Empty title="No job is like that">Take a filter away. An owner is found when the name is written whole.</Empty>;
}

const EXAMPLE = `from headrace import chain, group

pages = group(fetch.s(page) for page in range(100))
chain(pages, publish.s()).enqueue(name="all pages")`;

function NoneYet() {
  return (
    <Empty title="There are no jobs yet">
      <div className={styles.example}>
        <p>A job is a set of tasks that wait for each other. Make one in Python:</p>
        <Code text={EXAMPLE} label="Example of a job" />
      </div>
    </Empty>
  );
}
