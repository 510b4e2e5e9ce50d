import { useQuery } from "@tanstack/react-query";

import { api, call, type wire } from "@/api";
import { useQueryState } from "@/url/queryState";

export type Range = wire.QueueRates["range"];

export const RANGES: readonly { readonly value: Range; readonly label: string; readonly row: string; readonly each: number }[] = [
  { value: "5m", label: "Last 5 minutes", row: "5 minutes", each: 5000 },
  { value: "1h", label: "Last hour", row: "hour", each: 5000 },
  { value: "24h", label: "Last 24 hours", row: "day", each: 60_000 },
  { value: "7d", label: "Last 7 days", row: "7 days", each: 60_000 },
];

/** The time that both charts of a queue show, from the address. */
export function useRange(): readonly [Range, (range: string) => void] {
  const [text, setRange] = useQueryState("range", "1h");
  return [RANGES.find((each) => each.value === text)?.value ?? "1h", setRange];
}

/** What ended of a queue and how deep it was. However many ask, it is read once. */
export function useRates(name: string, range: Range) {
  return useQuery({
    queryKey: ["queues", name, "rates", range],
    queryFn: ({ signal }) =>
      call(api.GET("/api/v1/queues/{name}/rates", { signal, params: { path: { name }, query: { range } } })),
    refetchInterval: RANGES.find((each) => each.value === range)?.each ?? 5000,
  });
}
