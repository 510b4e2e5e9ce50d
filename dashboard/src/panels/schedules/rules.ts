/** The rules of a schedule in words. */

import type { wire } from "@/api";
import type { Option } from "@/ui";

type CatchUp = wire.ScheduleShown["catch_up"];
type Overlap = wire.ScheduleShown["overlap"];

export const CATCH_UP_WORDS: Readonly<Record<CatchUp, string>> = {
  coalesce: "one run for all ticks that were missed",
  skip: "no run for ticks",
  all: "a run for each tick that was missed",
};

export const OVERLAP_WORDS: Readonly<Record<Overlap, string>> = {
  skip: "the next is left out",
  queue: "the next waits for it, one at most",
  replace: "the next takes its place",
  allow: "the next runs beside it",
};

export const CATCH_UPS: readonly Option<CatchUp>[] = [
  { value: "coalesce", label: "one run for all of them" },
  { value: "skip", label: "none that is older than the grace" },
  { value: "all", label: "a run for each" },
];

export const OVERLAPS: readonly Option<Overlap>[] = (["skip", "queue", "replace", "allow"] as const).map((value) => ({
  value,
  label: OVERLAP_WORDS[value],
}));

export const UNITS: readonly Option[] = [
  { value: "1", label: "seconds" },
  { value: "60", label: "minutes" },
  { value: "3600", label: "hours" },
  { value: "86400", label: "days" },
];
