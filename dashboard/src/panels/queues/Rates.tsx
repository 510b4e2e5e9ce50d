import { useQuery } from "@tanstack/react-query";
import { useEffect, useRef, useState } from "react";

import { api, call, type wire } from "@/api";
import { Chart, Fact, Facts, Problem, Section, Select, shortNumber, type Option } from "@/ui";
import { useQueryState } from "@/url/queryState";

import { NOTHING_ENDED, percent, rateBetween, type Ended, type RatePoint } from "./figures";

type Range = wire.OverviewShown["range"];
const RANGES: readonly Option<Range>[] = [
  { value: "5m", label: "last 5 minutes" },
  { value: "1h", label: "last hour" },
  { value: "24h", label: "last day" },
  { value: "7d", label: "last 7 days" },
];
// Its steps are a quarter of an hour, so that two looks in between are about the same time.
const COUNTED_IN: Range = "24h";
const EACH = 5000;
const MOST_POINTS = 240;

function useOverview(range: Range, each: number) {
  return useQuery({
    queryKey: ["overview", range],
    queryFn: ({ signal }) => call(api.GET("/api/v1/overview", { signal, params: { query: { range } } })),
    refetchInterval: each,
  });
}

/** What ended of one queue: over a time, and each few seconds while one looks. */
export function Rates({ queue }: { readonly queue: string }) {
  const [range, setRange] = useQueryState<Range>("range", "1h");
  const over = useOverview(range, 10_000);
  const counted = useOverview(COUNTED_IN, EACH);
  const points = usePoints(queue, counted.data);
  const found = over.data?.finished.queues.find((each) => each.queue === queue);
  const counts = found ?? NOTHING_ENDED;
  const all = counts.completed + counts.failed;
  return (
    <Section title="Rates" actions={<Select quiet label="Over which time" options={RANGES} value={range} change={setRange} />}>
      {over.error !== null && <Problem title="What is shown is not up to date" error={over.error} retry={() => void over.refetch()} />}
      <Chart
        title="Ended each second"
        format={(value) => `${shortNumber(value)}/s`}
        times={points.map((point) => point.at)}
        series={[
          { id: "completed", title: "Completed", colour: 1, values: points.map((point) => point.completed) },
          { id: "failed", title: "Failed", colour: 2, values: points.map((point) => point.failed) },
        ]}
        height={120}
        empty="Counting: the first figure comes in some seconds."
      />
      <Facts>
        <Fact name="Completed">{counts.completed.toLocaleString("en-US")}</Fact>
        <Fact name="Failed">
          {counts.failed.toLocaleString("en-US")}
          {all > 0 && counts.failed > 0 && <span className="muted"> ({percent(counts.failed / all)})</span>}
        </Fact>
        <Fact name="Cancelled, rejected">{(counts.cancelled + counts.rejected).toLocaleString("en-US")}</Fact>
        <Fact name="Ended each second">{shortNumber(found?.per_second ?? 0)}</Fact>
      </Facts>
    </Section>
  );
}

function usePoints(queue: string, overview: wire.OverviewShown | undefined): readonly RatePoint[] {
  const [points, setPoints] = useState<{ readonly queue: string; readonly points: readonly RatePoint[] }>({ queue, points: [] });
  const last = useRef<{ readonly queue: string; readonly ended: Ended } | null>(null);
  useEffect(() => {
    if (overview === undefined) return;
    const counts = overview.finished.queues.find((each) => each.queue === queue) ?? NOTHING_ENDED;
    const ended: Ended = { since: overview.since, at: Date.parse(overview.as_of), counts };
    const before = last.current;
    if (before !== null && before.queue === queue && before.ended.at === ended.at) return;
    last.current = { queue, ended };
    if (before === null || before.queue !== queue) {
      setPoints({ queue, points: [] });
      return;
    }
    const point = rateBetween(before.ended, ended);
    setPoints((kept) => ({ queue, points: [...kept.points.slice(1 - MOST_POINTS), point] }));
  }, [queue, overview]);
  return points.points.length > 1 ? points.points : [];
}
