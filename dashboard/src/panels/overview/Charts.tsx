import type { wire } from "@/api";
import { Chart, durationText, shortNumber, type Series } from "@/ui";

import { finishedLines, loadPoints, type Outcome, type Sample } from "./figures";

const perSecond = (value: number): string => `${shortNumber(value)}/s`;

const OUTCOME_LINES: readonly { readonly id: Outcome; readonly title: string; readonly colour: Series["colour"] }[] = [
  { id: "completed", title: "Completed", colour: 6 },
  { id: "failed", title: "Failed", colour: 2 },
  { id: "cancelled", title: "Cancelled", colour: 3 },
  { id: "rejected", title: "Rejected", colour: 4 },
];

interface Shown {
  readonly shown: wire.OverviewShown;
}

export function EndedChart({ shown, samples }: Shown & { readonly samples: readonly Sample[] }) {
  const { times, values } = finishedLines(shown, samples);
  // What never happens in this range needs no line.
  const lines = OUTCOME_LINES.filter((line, at) => at < 2 || values[line.id].some((value) => value !== null && value > 0));
  return (
    <div className="card">
      <Chart
        title="Finished tasks"
        times={times}
        series={lines.map((line) => ({ ...line, values: values[line.id] }))}
        format={perSecond}
        filled
      />
    </div>
  );
}

export function LoadChart({ shown, samples }: Shown & { readonly samples: readonly Sample[] }) {
  const points = loadPoints(shown.depths, samples);
  return (
    <div className="card">
      <Chart
        title="Waiting and running"
        times={points.map((point) => point.at)}
        series={[
          { id: "waiting", title: "Waiting", colour: 5, values: points.map((point) => point.waiting) },
          { id: "running", title: "Running", colour: 1, values: points.map((point) => point.running) },
        ]}
        empty="The first figures are on their way."
        longest={2500 * shown.bucket}
      />
    </div>
  );
}

const PERCENTILES = [
  { id: "p50", title: "p50", colour: 1 },
  { id: "p95", title: "p95", colour: 4 },
  { id: "p99", title: "p99", colour: 2 },
] as const;

export function LatencyCharts({ shown }: Shown) {
  const { series } = shown.latency;
  const times = series.map((point) => Date.parse(point.at));
  return (["waiting", "running"] as const).map((kind) => (
    <div key={kind} className="card">
      <Chart
        title={kind === "waiting" ? "Time in the queue" : "Time of execution"}
        times={times}
        series={PERCENTILES.map((line) => ({ ...line, values: series.map((point) => point[kind][line.id] ?? null) }))}
        format={durationText}
      />
    </div>
  ));
}
