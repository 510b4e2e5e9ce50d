import { useState } from "react";
import { Link } from "react-router";

import type { wire } from "@/api";
import { Button, durationText, localTime, Problem, StateBadge, Time, toneOf, useNow, utcTime } from "@/ui";
import { classes } from "@/ui/classes";

import type { Earlier } from "../task/earlier";
import { axisOf, rowsOf, secondsOf, type Axis, type Segment, type TimelineRow } from "./layout";
import styles from "./Timeline.module.css";

interface TimelineProps {
  readonly task: wire.TaskDetail;
  /** The execution whose error is shown. */
  readonly active: number | null;
  /** Show the error of this execution. */
  choose(claim: number): void;
  /** Executions before those of the task. */
  readonly earlier: Earlier;
}

/** A task that sleeps and wakes has thousands of executions; the last ones are the ones to see. */
const SHOWN = 25;
const STANDS_STILL: ReadonlySet<string> = new Set(["completed", "failed", "cancelled", "rejected"]);

export function Timeline(props: TimelineProps) {
  return STANDS_STILL.has(props.task.state) ? <Drawn {...props} now={0} /> : <Moving {...props} />;
}

function Moving(props: TimelineProps) {
  return <Drawn {...props} now={useNow()} />;
}

function Drawn({ task, active, choose, earlier, now }: TimelineProps & { readonly now: number }) {
  const [all, setAll] = useState(false);
  const rows = rowsOf(task, now);
  const hidden = all ? 0 : Math.max(0, rows.length - SHOWN);
  const shown = rows.slice(hidden);
  const axis = axisOf(shown);
  const severalRuns = task.attempts.some((attempt) => attempt.run_no > 1) || task.run_no > 1;
  if (rows.length === 0) return <p className="muted">Nothing happened to it yet.</p>;
  return (
    <div className={styles.timeline}>
      {hidden > 0 && (
        <Button kind="quiet" onClick={() => setAll(true)}>
          {hidden.toLocaleString()} earlier ones{earlier.hasMore && ", and more before them"}
        </Button>
      )}
      {hidden === 0 && earlier.hasMore && (
        <Button kind="quiet" busy={earlier.isLoading} onClick={earlier.load}>
          Earlier ones
        </Button>
      )}
      {earlier.problem !== null && <Problem error={earlier.problem} retry={earlier.load} />}
      <table className={styles.table}>
        <caption className="visually-hidden">Every execution of this task, with its times</caption>
        <thead>
          <tr>
            <th scope="col">Attempt</th>
            <th scope="col">State</th>
            <th scope="col" className={styles.wide}>
              <span className={styles.ends}>
                <Time at={new Date(axis.from).toISOString()} form="full" />
                <span>+{durationText((axis.to - axis.from) / 1000)}</span>
              </span>
            </th>
            <th scope="col" className={styles.number}>
              Waited
            </th>
            <th scope="col" className={styles.number}>
              Claimed
            </th>
            <th scope="col" className={styles.number}>
              Ran
            </th>
            <th scope="col">Worker</th>
          </tr>
        </thead>
        <tbody>
          {shown.map((row) => (
            <Row
              key={row.attempt?.claim_no ?? "now"}
              row={row}
              axis={axis}
              active={active}
              choose={choose}
              withRun={severalRuns}
              state={task.state}
              charged={task.attempt}
            />
          ))}
        </tbody>
      </table>
      <Legend hasBreaks={axis.breaks.length > 0} />
    </div>
  );
}

interface RowProps {
  readonly row: TimelineRow;
  readonly axis: Axis;
  readonly active: number | null;
  choose(claim: number): void;
  readonly withRun: boolean;
  readonly state: wire.TaskState;
  /** Executions that were charged so far: the one that runs is the next, though it is charged when it ends. */
  readonly charged: number;
}

function Row({ row, axis, active, choose, withRun, state, charged }: RowProps) {
  const { attempt } = row;
  const name = attempt === null ? "next" : attempt.attempt === null && attempt.state === "running" ? charged + 1 : (attempt.attempt ?? "–");
  return (
    <tr className={attempt !== null && attempt.claim_no === active ? styles.chosen : undefined}>
      <th scope="row" data-title="Attempt">
        <span title={attempt === null ? undefined : `Claim ${attempt.claim_no}${attempt.charged ? "" : ", not charged"}`}>
          {name}
          {withRun && attempt !== null && <span className={styles.run}> run {attempt.run_no}</span>}
        </span>
      </th>
      <td data-title="State">
        <StateBadge state={attempt?.state ?? state} />
      </td>
      <td className={styles.bars}>
        <div className={styles.track} aria-hidden="true">
          {axis.breaks.map((each) => (
            <span key={each.from} className={styles.break} style={{ left: percent((axis.place(each.from) + axis.place(each.to)) / 2) }} />
          ))}
          {row.segments.map((segment) => (
            <Bar key={segment.kind} segment={segment} axis={axis} attempt={attempt} />
          ))}
        </div>
      </td>
      <Seconds title="Waited" seconds={secondsOf(row, "waiting")} />
      <Seconds title="Claimed" seconds={secondsOf(row, "claimed")} />
      <Seconds title="Ran" seconds={secondsOf(row, "running")} />
      <td data-title="Worker" className={styles.worker}>
        {attempt?.worker != null ? <Link to={`/workers/${encodeURIComponent(attempt.worker)}`}>{attempt.worker}</Link> : null}
        {attempt !== null && (attempt.error !== null || attempt.traceback !== null) && (
          <Button kind="quiet" aria-pressed={attempt.claim_no === active} onClick={() => choose(attempt.claim_no)}>
            Error
          </Button>
        )}
        {attempt !== null && attempt.late_state !== null && (
          <span className={styles.late} title="It was reported after the claim was lost, and refused">
            late: {attempt.late_state} <Time at={attempt.late_at} />
          </span>
        )}
        {attempt !== null && attempt.exit_code !== null && <span className="muted"> exit {attempt.exit_code}</span>}
      </td>
    </tr>
  );
}

function Seconds({ title, seconds }: { readonly title: string; readonly seconds: number | null }) {
  return (
    <td data-title={title} className={styles.number}>
      {seconds === null ? null : seconds === 0 ? "<1 ms" : durationText(seconds)}
    </td>
  );
}

function Bar({ segment, axis, attempt }: { readonly segment: Segment; readonly axis: Axis; readonly attempt: wire.AttemptShown | null }) {
  const left = axis.place(segment.from);
  const width = axis.place(segment.to) - left;
  const tone = segment.kind === "running" ? styles[toneOf(attempt?.state ?? "running")] : undefined;
  const from = new Date(segment.from);
  const to = new Date(segment.to);
  const title = [
    `${segment.kind === "due" ? "not due before" : segment.kind}: ${durationText((segment.to - segment.from) / 1000)}`,
    `${localTime(from)} – ${segment.isOpen && segment.kind !== "due" ? "now" : localTime(to)}`,
    `${utcTime(from)}`,
  ].join("\n");
  return (
    <span
      className={classes(styles.bar, styles[segment.kind], tone)}
      style={{ left: percent(left), width: percent(width) }}
      title={title}
    />
  );
}

function percent(part: number): string {
  return `${(100 * part).toFixed(3)}%`;
}

function Legend({ hasBreaks }: { readonly hasBreaks: boolean }) {
  return (
    <ul className={styles.legend}>
      <li>
        <span className={classes(styles.key, styles.waiting)} /> waiting
      </li>
      <li>
        <span className={classes(styles.key, styles.claimed)} /> claimed, not started
      </li>
      <li>
        <span className={classes(styles.key, styles.running, styles.active)} /> running
      </li>
      <li>
        <span className={classes(styles.key, styles.running, styles.good)} /> succeeded
      </li>
      <li>
        <span className={classes(styles.key, styles.running, styles.bad)} /> failed
      </li>
      {hasBreaks && (
        <li>
          <span className={styles.breakKey} /> long waits are drawn shorter
        </li>
      )}
    </ul>
  );
}
