/** What the pages of breakers compute. Pure. */

import type { wire } from "@/api";
import type { Option } from "@/ui";

type Breaker = Pick<wire.BreakerShown, "status" | "forced" | "calls" | "failures" | "until">;

/** Of the calls that whoever opened it had counted, how many failed; null where none was counted. */
export function failedShare(breaker: Pick<Breaker, "calls" | "failures">): number | null {
  return breaker.calls === 0 ? null : breaker.failures / breaker.calls;
}

/** What it does with calls just now, and what comes next. */
export function meaningOf(breaker: Breaker): string {
  switch (breaker.status) {
    case "closed":
      return "Calls go through and are counted.";
    case "half_open":
      return "One call is let through: when it goes well the breaker closes, when it fails it opens again.";
    case "open":
      return breaker.forced
        ? "Opened by hand: no call is made until somebody resets it. Tasks go back uncharged."
        : "No call is made. Tasks go back uncharged, and come again when the service may be probed.";
  }
}

/** Those that spare a service first; then by name. */
export function inOrder<B extends Pick<wire.BreakerShown, "status" | "service">>(breakers: readonly B[]): readonly B[] {
  const rank = { open: 0, half_open: 1, closed: 2 } as const;
  return [...breakers].sort((one, other) => rank[one.status] - rank[other.status] || one.service.localeCompare(other.service));
}

export const TIMES: readonly Option[] = [
  { value: "60", label: "for a minute" },
  { value: "600", label: "for 10 minutes" },
  { value: "3600", label: "for an hour" },
  { value: "86400", label: "for a day" },
  { value: "", label: "until somebody resets it" },
];

type Change = Pick<wire.BreakerChange, "act" | "source" | "forced" | "calls" | "failures">;

/** What happened to it, in words. */
export function changeText(change: Change): string {
  switch (change.act) {
    case "reset":
      return "closed by hand";
    case "opened":
      if (change.source === "audit") return "opened by hand";
      // The command line leaves nothing in the audit log of the server, but for what it did.
      if (change.forced) return "opened by hand, by the command line or by code";
      if (change.calls === null) return "opened again: the probe failed, or too many calls did";
      return `opened: ${change.failures ?? 0} of ${change.calls} calls failed`;
    case "half_open":
      return "half open: its time was over, one call may probe";
    case "closed":
      return "closed: a probe went well, or somebody reset it elsewhere";
  }
}

/** What it was from then on. */
export function statusAfter(change: Pick<wire.BreakerChange, "act" | "outcome">): wire.BreakerStatus | null {
  if (change.outcome !== "done") return null;
  if (change.act === "half_open") return "half_open";
  return change.act === "opened" ? "open" : "closed";
}
