import { Link } from "react-router";

import type { wire } from "@/api";
import { countText, Empty, Section, Table, Time, type Column } from "@/ui";

import { isRange, RANGE_TITLES } from "./figures";
import styles from "./Overview.module.css";

type Failure = wire.OverviewShown["failing"]["items"][number];

const COLUMNS: readonly Column<Failure>[] = [
  {
    id: "error",
    title: "Error",
    wide: true,
    cell: (failure) => (
      <>
        <span className={styles.errorClass}>{shortClass(failure.error_class)}</span>{" "}
        <span className="muted">{failure.message}</span>
      </>
    ),
  },
  {
    id: "tasks",
    title: "Tasks",
    hide: "medium",
    cell: (failure) => (
      <>
        {failure.names[0]}
        {failure.names.length > 1 && <span className="muted"> +{failure.names.length - 1}</span>}
      </>
    ),
  },
  { id: "count", title: "Times", align: "right", cell: (failure) => countText(failure.count) },
  { id: "newest", title: "Last", align: "right", cell: (failure) => <Time at={failure.newest_at} /> },
];

export function FailingErrors({ failing, range }: { readonly failing: wire.OverviewShown["failing"]; readonly range: string }) {
  const time = isRange(range) ? RANGE_TITLES[range].toLowerCase() : range;
  return (
    <Section title="Failing, by error" actions={<Link to="/dead-letters">Dead letters</Link>}>
      <Table
        label="Failing tasks by error"
        columns={COLUMNS}
        rows={failing.items}
        keyOf={(failure) => failure.key}
        linkOf={(failure) => `/tasks?q=${encodeURIComponent(searchFor(failure))}`}
        empty={<Empty title="Nothing failed">No task failed for good in the {time}.</Empty>}
      />
      {!failing.searched.complete && (
        <p className={styles.note}>
          Of the newest {failing.searched.tasks.toLocaleString("en-US")} failures; there were more before.
        </p>
      )}
    </Section>
  );
}

/** builtins.TimeoutError is TimeoutError to everybody. */
export function shortClass(name: string | null): string {
  return name === null ? "No error class" : (name.split(".").at(-1) ?? name);
}

export function searchFor(failure: Pick<Failure, "error_class">): string {
  return failure.error_class === null ? "state:failed" : `state:failed error:${failure.error_class}`;
}
