import type { wire } from "@/api";

import { classes } from "./classes";
import styles from "./StateBadge.module.css";

export type Tone = "waiting" | "blocked" | "active" | "good" | "bad" | "warn" | "ended";

type AnyState = wire.TaskState | wire.JobState | wire.AttemptState | wire.WorkerShown["state"] | wire.BreakerStatus;

const TONES: Readonly<Record<AnyState, Tone>> = {
  pending: "waiting",
  pending_approval: "warn",
  blocked: "blocked",
  claimed: "active",
  running: "active",
  paused: "warn",
  cancelling: "warn",
  lost: "warn",
  completed: "good",
  succeeded: "good",
  failed: "bad",
  timed_out: "bad",
  cancelled: "ended",
  rejected: "ended",
  refused: "ended",
  released: "ended",
  snoozed: "waiting",
  suspended: "waiting",
  active: "active",
  idle: "good",
  stopping: "warn",
  stopped: "ended",
  closed: "good",
  open: "bad",
  half_open: "warn",
};

export function toneOf(state: string): Tone {
  return (TONES as Readonly<Record<string, Tone | undefined>>)[state] ?? "ended";
}

/** As people read it: half_open → half open. */
export function wordsOf(state: string): string {
  return state.replaceAll("_", " ");
}

interface StateBadgeProps {
  readonly state: AnyState;
  /** Why it is in this state. */
  readonly reason?: string | null | undefined;
}

export function StateBadge({ state, reason }: StateBadgeProps) {
  return (
    <Badge tone={toneOf(state)} moving={state === "running"}>
      {wordsOf(state)}
      {reason != null && reason !== "" && <span className={styles.reason}> · {wordsOf(reason)}</span>}
    </Badge>
  );
}

interface BadgeProps {
  readonly tone: Tone;
  readonly moving?: boolean;
  readonly title?: string;
  readonly children: React.ReactNode;
}

/** A word with a colour; the word alone says it all. */
export function Badge({ tone, moving = false, title, children }: BadgeProps) {
  return (
    <span className={classes(styles.badge, styles[tone])} title={title}>
      <span className={classes(styles.dot, moving && styles.moving)} aria-hidden="true" />
      <span>{children}</span>
    </span>
  );
}
