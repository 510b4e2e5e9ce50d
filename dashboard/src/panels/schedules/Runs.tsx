import { Link } from "react-router";

import type { wire } from "@/api";
import { Badge, localTime, type Tone } from "@/ui";
import { classes } from "@/ui/classes";

import styles from "./Schedules.module.css";

type Status = wire.RunStatus;

const TONES: Readonly<Record<Status, Tone>> = {
  pending: "waiting",
  running: "active",
  completed: "good",
  failed: "bad",
  cancelled: "ended",
  skipped: "ended",
  expired: "ended",
};

/** One sign each, so that the colour does not say it alone. */
const SIGNS: Readonly<Record<Status, string>> = {
  pending: "…",
  running: "▸",
  completed: "✓",
  failed: "✕",
  cancelled: "–",
  skipped: "»",
  expired: "?",
};

export const WHY: Readonly<Partial<Record<Status, string>>> = {
  skipped: "An earlier run was unfinished, or the task's own key was held",
  expired: "Its task ended longer ago than history is kept",
};

export function RunBadge({ status }: { readonly status: Status }) {
  const why = WHY[status];
  return (
    <Badge tone={TONES[status]} moving={status === "running"} {...(why === undefined ? {} : { title: why })}>
      {status}
    </Badge>
  );
}

/** The last runs as a row of signs, the newest at the left; each leads to its task. */
export function LastRuns({ runs }: { readonly runs: readonly wire.RunShown[] }) {
  if (runs.length === 0) return <span className="muted">none yet</span>;
  return (
    <span className={styles.runs}>
      {runs.map((run) => {
        const said = `${run.status}${run.manual ? ", by hand" : ""}, ${localTime(new Date(run.tick))}`;
        const sign = (
          <span className={classes(styles.run, styles[TONES[run.status]])} title={said}>
            <span aria-hidden="true">{SIGNS[run.status]}</span>
            <span className="visually-hidden">{said}</span>
          </span>
        );
        const key = `${run.tick} ${run.manual}`;
        return run.task === null ? (
          <span key={key}>{sign}</span>
        ) : (
          <Link key={key} to={`/tasks/${run.task}`}>
            {sign}
          </Link>
        );
      })}
    </span>
  );
}
