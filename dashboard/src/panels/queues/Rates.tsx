import type { wire } from "@/api";
import { Chart, Problem, Section, Select, shortNumber } from "@/ui";

import { percent, ratePoints } from "./figures";
import styles from "./Queues.module.css";
import { RANGES, useRange, useRates } from "./useRates";

/** What ended of one queue: a line over the chosen time, and sums over times from minutes to a week. */
export function Rates({ queue }: { readonly queue: string }) {
  const asked = {
    "5m": useRates(queue, "5m"),
    "1h": useRates(queue, "1h"),
    "24h": useRates(queue, "24h"),
    "7d": useRates(queue, "7d"),
  };
  const [range, setRange] = useRange();
  const shown = asked[range].data;
  const points = shown === undefined ? [] : ratePoints(shown);
  const failed = Object.values(asked).find((each) => each.error !== null);
  return (
    <Section title="Rates" actions={<Select label="Time range" quiet value={range} change={setRange} options={RANGES} />}>
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
          empty="The figures are on their way."
        />
        {shown?.complete === false && <p className="muted">Not all of this time has been counted yet.</p>}
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
            {RANGES.map(({ value, row }) => (
              <Over key={value} title={row} rates={asked[value].data} />
            ))}
          </tbody>
        </table>
      </div>
    </Section>
  );
}

function Over({ title, rates }: { readonly title: string; readonly rates: wire.QueueRates | undefined }) {
  const { completed, failed } = rates?.totals ?? { completed: 0, failed: 0 };
  return (
    <tr>
      <th scope="row">{title}</th>
      <td>{rates === undefined ? "–" : completed.toLocaleString("en-US")}</td>
      <td>
        {rates === undefined ? "–" : failed.toLocaleString("en-US")}
        {failed > 0 && <span className="muted"> ({percent(failed / (completed + failed))})</span>}
      </td>
      <td>{rates === undefined ? "–" : `${shortNumber(rates.per_second)}/s`}</td>
    </tr>
  );
}
