import type { wire } from "@/api";
import { Badge, depthText, Empty, Section, shortNumber, Table, type Column } from "@/ui";

import styles from "./Overview.module.css";

interface Row {
  readonly name: string;
  readonly paused: boolean;
  readonly depths: Readonly<Record<string, number>>;
  /** Of what waits where most does, from 0 to 1. */
  readonly share: number;
  readonly perSecond: number | null;
}

interface QueueDepthsProps {
  readonly queues: readonly Omit<Row, "share" | "perSecond">[];
  readonly finished: wire.OverviewShown["finished"]["queues"];
}

const lane = (id: string, title: string, hide?: "narrow" | "medium"): Column<Row> => ({
  id,
  title,
  align: "right",
  ...(hide === undefined ? {} : { hide }),
  cell: (row) => <Depth depth={row.depths[id] ?? 0} />,
});

const COLUMNS: readonly Column<Row>[] = [
  { id: "name", title: "Queue", cell: (row) => row.name },
  {
    id: "state",
    title: "State",
    cell: (row) => (row.paused ? <Badge tone="warn">paused</Badge> : <Badge tone="good">open</Badge>),
  },
  { id: "bar", title: "Backlog", wide: true, hide: "narrow", cell: (row) => <Backlog row={row} /> },
  lane("primary", "Primary"),
  lane("retry", "Retry"),
  lane("scheduled", "Scheduled", "narrow"),
  lane("waiting", "Blocked", "medium"),
  lane("claimed", "Claimed", "medium"),
  lane("running", "Running"),
  {
    id: "rate",
    title: "Finished",
    align: "right",
    hide: "narrow",
    cell: (row) => (row.perSecond === null ? "–" : `${shortNumber(row.perSecond)}/s`),
  },
];

export function QueueDepths({ queues, finished }: QueueDepthsProps) {
  const most = Math.max(1, ...queues.map(backlogOf));
  const speeds = new Map(finished.map((queue) => [queue.queue, queue.per_second]));
  const rows = queues.map((queue) => ({
    ...queue,
    share: backlogOf(queue) / most,
    perSecond: speeds.get(queue.name) ?? null,
  }));
  return (
    <Section title="Queues and lanes">
      <Table
        label="Queues and lanes"
        columns={COLUMNS}
        rows={rows}
        keyOf={(row) => row.name}
        linkOf={(row) => `/queues/${encodeURIComponent(row.name)}`}
        empty={<Empty title="Every queue is empty">A queue stands here while tasks wait or run in it.</Empty>}
      />
    </Section>
  );
}

export function backlogOf(queue: { readonly depths: Readonly<Record<string, number>> }): number {
  return (queue.depths["primary"] ?? 0) + (queue.depths["retry"] ?? 0);
}

function Depth({ depth }: { readonly depth: number }) {
  return <span className={depth === 0 ? "muted" : undefined}>{depthText(depth)}</span>;
}

/** Both lanes, beside each other; the figures stand in the columns. */
function Backlog({ row }: { readonly row: Row }) {
  const total = Math.max(1, backlogOf(row));
  const part = (name: string): string => `${(100 * row.share * (row.depths[name] ?? 0)) / total}%`;
  return (
    <div className={styles.backlog} aria-hidden="true">
      <div className={styles.primary} style={{ width: part("primary") }} />
      <div className={styles.retry} style={{ width: part("retry") }} />
    </div>
  );
}
