import type { wire } from "@/api";
import type { OverviewMessage } from "@/live";
import { countText, depthText, durationText, shortNumber, Stat, Stats } from "@/ui";

import { failureShare, percentText, rates, runningOf, waitingOf, type Sample } from "./figures";

interface SummaryProps {
  readonly shown: wire.OverviewShown;
  readonly latest: OverviewMessage | undefined;
  readonly samples: readonly Sample[];
}

/** A share of failures that somebody should look at. */
const MANY_FAIL = 0.05;

export function Summary({ shown, latest, samples }: SummaryProps) {
  const rate = rates(samples, "completed").at(-1) ?? null;
  const { totals } = shown.finished;
  const share = failureShare(totals);
  const queues = latest?.queues ?? shown.queues;
  const states = latest?.states ?? Object.fromEntries(Object.entries(shown.states).map(([state, count]) => [state, count.n]));
  const workers = latest?.workers ?? shown.workers;
  const paused = queues.filter((queue) => queue.paused).length;
  return (
    <Stats label="At a glance">
      <Stat
        label="Completed now"
        value={rate === null ? "–" : `${shortNumber(rate)}/s`}
        detail={`${shortNumber(totals.completed)} in this range`}
        to="/tasks?q=state:completed"
      />
      <Stat
        label="Failed"
        value={percentText(share)}
        detail={`${shortNumber(totals.failed)} in this range`}
        {...(share !== null && share >= MANY_FAIL ? { tone: "bad" as const } : {})}
        to="/tasks?q=state:failed"
      />
      <Stat
        label="Waiting"
        value={depthText(waitingOf(queues))}
        detail={queuesText(queues.length, paused)}
        {...(paused > 0 ? { tone: "warn" as const } : {})}
        to="/queues"
      />
      <Stat label="Running" value={depthText(runningOf(states))} detail="claimed or running" to="/tasks?q=state:running" />
      <Stat
        label="Time in the queue"
        value={shown.latency.waiting.p95 == null ? "–" : durationText(shown.latency.waiting.p95)}
        detail="95 of 100 wait less"
      />
      <Stat
        label="Workers alive"
        value={workers.alive}
        detail={workersText(workers)}
        {...(workers.alive === 0 || workers.silent > 0 ? { tone: "bad" as const } : {})}
        to="/workers"
      />
      <Stat
        label="Dead letters"
        value={countText(shown.dead_letters)}
        detail={shown.dead_letters.n === 0 ? "nothing to replay" : "wait for somebody"}
        {...(shown.dead_letters.n > 0 ? { tone: "warn" as const } : {})}
        to="/dead-letters"
      />
    </Stats>
  );
}

function queuesText(count: number, paused: number): string {
  if (paused > 0) return `${paused} of ${count} queues paused`;
  return count === 0 ? "every queue is empty" : `in ${count === 1 ? "one queue" : `${count} queues`}`;
}

export function workersText(workers: OverviewMessage["workers"]): string {
  if (workers.silent > 0) return `${workers.silent} silent`;
  if (workers.stopping > 0) return `${workers.stopping} stopping`;
  return workers.hosts === 1 ? "on one host" : `on ${workers.hosts} hosts`;
}
