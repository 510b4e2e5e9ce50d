import type { wire } from "@/api";
import { Empty, Section, shortNumber, Table, type Column } from "@/ui";

import { failureShare, isRange, percentText, RANGE_TITLES } from "./figures";

type Named = wire.OverviewShown["finished"]["names"][number];

const COLUMNS: readonly Column<Named>[] = [
  { id: "name", title: "Task", wide: true, cell: (named) => named.name },
  { id: "queue", title: "Queue", hide: "medium", cell: (named) => named.queue },
  { id: "completed", title: "Completed", align: "right", cell: (named) => shortNumber(named.completed) },
  { id: "failed", title: "Failed", align: "right", cell: (named) => shortNumber(named.failed) },
  { id: "share", title: "Share", align: "right", hide: "narrow", cell: (named) => percentText(failureShare(named)) },
];

const MOST = 10;

export function TaskNames({ names, range }: { readonly names: readonly Named[]; readonly range: string }) {
  const time = isRange(range) ? RANGE_TITLES[range].toLowerCase() : range;
  return (
    <Section title="Busiest tasks">
      <Table
        label="Busiest tasks"
        columns={COLUMNS}
        rows={names.slice(0, MOST)}
        keyOf={(named) => `${named.name} ${named.queue}`}
        linkOf={(named) => `/tasks?q=${encodeURIComponent(`name:${named.name}`)}`}
        empty={<Empty title="Nothing has ended">No task ended in the {time}.</Empty>}
      />
    </Section>
  );
}
