import { Link } from "react-router";

import type { wire } from "@/api";
import { countText, depthText, Section, StateBadge } from "@/ui";

import styles from "./Overview.module.css";

const STATES: readonly wire.TaskState[] = [
  "pending_approval",
  "blocked",
  "pending",
  "claimed",
  "running",
  "paused",
  "cancelling",
  "lost",
  "completed",
  "failed",
  "cancelled",
  "rejected",
];

interface StateCountsProps {
  readonly counted: wire.OverviewShown["states"];
  readonly live: Readonly<Record<string, number>> | undefined;
}

export function StateCounts({ counted, live }: StateCountsProps) {
  const texts = STATES.map((state) => ({ state, text: textOf(state, counted, live) })).filter(({ text }) => text !== "0");
  return (
    <Section title="States">
      {texts.length === 0 && <p className="muted">There is no task.</p>}
      <ul className={styles.states}>
        {texts.map(({ state, text }) => (
          <li key={state}>
            <Link to={`/tasks?q=state:${state}`} className={styles.state}>
              <StateBadge state={state} />
              <span>{text}</span>
            </Link>
          </li>
        ))}
      </ul>
    </Section>
  );
}

export function textOf(state: string, counted: StateCountsProps["counted"], live: StateCountsProps["live"]): string {
  const now = live?.[state];
  if (now !== undefined) return depthText(now);
  // A message that is there and does not name it has none of it.
  const count = live === undefined ? counted[state] : undefined;
  return count === undefined ? "0" : countText(count);
}
