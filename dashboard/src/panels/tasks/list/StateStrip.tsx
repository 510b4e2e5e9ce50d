import { useMay } from "@/app/session";
import { useLive } from "@/live";
import { depthText } from "@/ui";
import { classes } from "@/ui/classes";

import { parseSearch, STATE_WORDS, withValues } from "../search/query";
import styles from "./StateStrip.module.css";

interface Group {
  readonly title: string;
  readonly tone: string;
  /** As they are written in the search. */
  readonly words: readonly string[];
  readonly states: readonly string[];
  /** Live tasks are counted all the time; how many ever completed, nobody counts. */
  readonly isCounted?: boolean;
}

const GROUPS: readonly Group[] = [
  { title: "Waiting", tone: "waiting", words: ["waiting"], states: STATE_WORDS.waiting, isCounted: true },
  { title: "Active", tone: "active", words: ["active", "lost"], states: [...STATE_WORDS.active, "lost"], isCounted: true },
  { title: "Failed", tone: "bad", words: ["failed"], states: ["failed"] },
  { title: "Completed", tone: "good", words: ["completed"], states: ["completed"] },
  { title: "Cancelled", tone: "ended", words: ["cancelled", "rejected"], states: ["cancelled", "rejected"] },
];

interface StateStripProps {
  readonly search: string;
  change(search: string): void;
}

/** The states as one choice, with how many tasks wait and are at work. */
export function StateStrip({ search, change }: StateStripProps) {
  const isOverseer = useMay()({ overseer: true });
  const { filters } = parseSearch(search);
  // The figures are of the whole ledger: beside another filter, or for who sees their own alone, they would mislead.
  const rest = withValues(search, "state", []);
  const counts = useLive(isOverseer && rest === "" ? { kind: "system" } : null, "system")?.tasks;
  return (
    <div role="group" aria-label="State" className={styles.strip}>
      <button type="button" aria-pressed={filters.status.length === 0} className={styles.chip} onClick={() => change(rest)}>
        All
      </button>
      {GROUPS.map((group) => {
        const chosen = sameMembers(filters.status, group.states);
        return (
          <button
            key={group.title}
            type="button"
            aria-pressed={chosen}
            className={styles.chip}
            onClick={() => change(chosen ? rest : withValues(search, "state", group.words))}
          >
            <span className={classes(styles.dot, styles[group.tone])} aria-hidden="true" />
            {group.title}
            {counts !== undefined && group.isCounted === true && <span className={styles.count}>{countOf(counts, group.states)}</span>}
          </button>
        );
      })}
    </div>
  );
}

function countOf(counts: Readonly<Record<string, number>>, states: readonly string[]): string {
  return depthText(states.reduce((sum, state) => sum + (counts[state] ?? 0), 0));
}

function sameMembers(one: readonly string[], other: readonly string[]): boolean {
  return one.length === other.length && one.every((each) => other.includes(each));
}
