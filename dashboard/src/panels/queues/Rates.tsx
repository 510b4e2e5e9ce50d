import { useQuery } from "@tanstack/react-query";
import { useEffect, useRef, useState } from "react";

import { api, call, type wire } from "@/api";
import { Chart, Problem, Section, shortNumber } from "@/ui";

import { NOTHING_ENDED, percent, rateBetween, type Ended, type RatePoint } from "./figures";
import styles from "./Queues.module.css";

type Range = wire.OverviewShown["range"];
const EACH = 5000;
const MOST_POINTS = 240;

function useOverview(range: Range, each: number) {
  return useQuery({
    queryKey: ["overview", range],
    queryFn: ({ signal }) => call(api.GET("/api/v1/overview", { signal, params: { query: { range } } })),
    refetchInterval: each,
  });
}

/** What ended of one queue: over times from minutes to a week, and each few seconds while one looks. */
export function Rates({ queue }: { readonly queue: string }) {
  const minutes = useOverview("5m", EACH);
  const hour = useOverview("1h", 10_000);
  const day = useOverview("24h", 60_000);
  const week = useOverview("7d", 60_000);
  // The shortest range costs the server least, so that its figures are the newest.
  const points = usePoints(queue, minutes.data);
  const failed = [minutes, hour, day, week].find((each) => each.error !== null);
  return (
    <Section title="Rates">
      <div className="stack">
        {failed !== undefined && (
          <Problem title="What is shown is not up to date" error={failed.error} retry={() => void failed.refetch()} />
        )}
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
        <table className={styles.rates}>
          <caption className="visually-hidden">What ended of {queue}</caption>
          <thead>
            <tr>
              <th scope="col">In the last</th>
              <th scope="col">Completed</th>
              <th scope="col">Failed</th>
              <th scope="col">Each second</th>
            </tr>
          </thead>
          <tbody>
            <Over title="5 minutes" queue={queue} overview={minutes.data} />
            <Over title="hour" queue={queue} overview={hour.data} />
            <Over title="day" queue={queue} overview={day.data} />
            <Over title="7 days" queue={queue} overview={week.data} />
          </tbody>
        </table>
      </div>
    </Section>
  );
}

interface OverProps {
  readonly title: string;
  readonly queue: string;
  readonly overview: wire.OverviewShown | undefined;
}

function Over({ title, queue, overview }: OverProps) {
  const found = overview?.finished.queues.find((each) => each.queue === queue);
  const { completed, failed } = found ?? NOTHING_ENDED;
  const all = completed + failed;
  return (
    <tr>
      <th scope="row">{title}</th>
      <td>{overview === undefined ? "–" : completed.toLocaleString("en-US")}</td>
      <td>
        {overview === undefined ? "–" : failed.toLocaleString("en-US")}
        {failed > 0 && <span className="muted"> ({percent(failed / all)})</span>}
      </td>
      <td>{overview === undefined ? "–" : `${shortNumber(found?.per_second ?? 0)}/s`}</td>
    </tr>
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
    // Once a minute the range moves on; the line goes on behind that.
    if (point === null) return;
    setPoints((kept) => ({ queue, points: [...kept.points.slice(1 - MOST_POINTS), point] }));
  }, [queue, overview]);
  return points.points.length > 1 ? points.points : [];
}
