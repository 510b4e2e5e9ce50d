import { Chart, Section } from "@/ui";

import { depthPoints, type Sample } from "./figures";
import { useRange, useRates } from "./useRates";

/** How deep a queue was in the time that is chosen beside it, and is since the page is open. */
export function Depths({ queue, seen }: { readonly queue: string; readonly seen: readonly Sample[] }) {
  const [range] = useRange();
  const noted = useRates(queue, range).data;
  const points = depthPoints(noted?.depths ?? [], seen);
  return (
    <Section title="Depths">
      <Chart
        title="Waiting and running"
        filled
        longest={2500 * (noted?.bucket ?? 60)}
        times={points.map((point) => point.at)}
        empty="The first figures come in some seconds."
        series={[
          { id: "fresh", title: "New", colour: 1, values: points.map((point) => point.fresh) },
          { id: "retry", title: "Retries", colour: 4, values: points.map((point) => point.retry) },
          { id: "running", title: "Running", colour: 5, values: points.map((point) => point.running) },
        ]}
      />
    </Section>
  );
}
