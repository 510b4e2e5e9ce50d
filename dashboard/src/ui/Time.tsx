import { useSyncExternalStore } from "react";

import { durationText, localTime, relativeTime, utcTime } from "./instants";

/** One clock for the page: everything that is relative moves together, once a second. */
const listeners = new Set<() => void>();
let now = Date.now();
let timer: number | null = null;

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  now = Date.now();
  timer ??= window.setInterval(() => {
    now = Date.now();
    for (const each of [...listeners]) each();
  }, 1000);
  return () => {
    listeners.delete(listener);
    if (listeners.size === 0 && timer !== null) {
      window.clearInterval(timer);
      timer = null;
    }
  };
}

/** Milliseconds since the epoch, renewed each second. */
export function useNow(): number {
  return useSyncExternalStore(subscribe, () => now);
}

interface TimeProps {
  /** ISO 8601, as the API writes it. */
  readonly at: string | null | undefined;
  /** "relative": 3 min ago. "full": the date and the time. */
  readonly form?: "relative" | "full";
}

/** An instant, in the viewer's zone; on hover that and UTC. */
export function Time({ at, form = "relative" }: TimeProps) {
  if (at == null) return <span className="muted">–</span>;
  const date = new Date(at);
  if (Number.isNaN(date.getTime())) return <span>{at}</span>;
  return (
    <time dateTime={date.toISOString()} title={`${localTime(date)} here\n${utcTime(date)}`}>
      {form === "full" ? localTime(date) : <Relative date={date} />}
    </time>
  );
}

function Relative({ date }: { readonly date: Date }) {
  return relativeTime(date, useNow());
}

interface DurationProps {
  readonly seconds?: number | null | undefined;
  /** Since then, and still counting. */
  readonly since?: string | null | undefined;
}

export function Duration({ seconds, since }: DurationProps) {
  if (seconds != null) return <span title={`${seconds} s`}>{durationText(seconds)}</span>;
  if (since != null) return <Counting since={since} />;
  return <span className="muted">–</span>;
}

function Counting({ since }: { readonly since: string }) {
  const elapsed = Math.max(0, useNow() - Date.parse(since)) / 1000;
  return <span>{durationText(Math.floor(elapsed))}</span>;
}
