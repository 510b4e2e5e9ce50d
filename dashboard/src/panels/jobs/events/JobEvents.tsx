import { useMemo } from "react";

import { api, call, useListing, type wire } from "@/api";
import { Chart, Empty, Section, StateBadge, Table, Time, type Column, type Series } from "@/ui";

import { isOver } from "../following";
import { chartOf } from "./chart";

type JobEvent = wire.JobEventShown;

const COLUMNS: readonly Column<JobEvent>[] = [
  { id: "seq", title: "No.", cell: (event) => event.seq },
  { id: "at", title: "Time", cell: (event) => <Time at={event.at} form="full" /> },
  { id: "state", title: "State", cell: (event) => <StateBadge state={event.state} /> },
  { id: "completed", title: "Completed", align: "right", cell: (event) => event.completed.toLocaleString() },
  { id: "failed", title: "Failed", align: "right", cell: (event) => event.failed.toLocaleString() },
  { id: "cancelled", title: "Cancelled", align: "right", cell: (event) => event.cancelled.toLocaleString() },
  { id: "total", title: "Of", align: "right", cell: (event) => event.total.toLocaleString() },
];

const SERIES = [
  { id: "completed", title: "completed", colour: 6 },
  { id: "failed", title: "failed", colour: 2 },
  { id: "cancelled", title: "cancelled", colour: 4 },
] as const satisfies readonly Omit<Series, "values">[];

/** What became of the job, change by change. */
export default function JobEvents({ job }: { readonly job: wire.JobShown }) {
  const events = useListing<JobEvent>(
    ["job", job.id, "events"],
    async (cursor, signal) => {
      const query = { limit: 500, ...(cursor === null ? {} : { after: Number(cursor) }) };
      const page = await call(api.GET("/api/v1/jobs/{id}/events", { signal, params: { path: { id: job.id }, query } }));
      return { items: page.items, next: page.next ?? null };
    },
    isOver(job) ? {} : { refreshEach: 5000 },
  );
  const chart = useMemo(() => chartOf(events.items), [events.items]);
  return (
    <div className="stack">
      {chart.times.length > 1 && (
        <Section title="Progress">
          <Chart
            title="Tasks that ended"
            times={chart.times}
            series={SERIES.filter(({ id }) => id === "completed" || chart[id].some((value) => value > 0)).map((series) => ({
              ...series,
              values: chart[series.id],
            }))}
          />
        </Section>
      )}
      <Table
        label="Events of the job"
        columns={COLUMNS}
        rows={events.items}
        keyOf={(event) => event.seq}
        listing={events}
        empty={<Empty title="Nothing has happened yet">An event is written when the job or its counts change. Old ones are removed with time.</Empty>}
      />
    </div>
  );
}
