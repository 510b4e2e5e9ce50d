import type { wire } from "@/api";
import { Progress, StateBadge, Time } from "@/ui";

import { failedShare } from "./breaking";

export function Status({ breaker }: { readonly breaker: wire.BreakerShown }) {
  return <StateBadge state={breaker.status} reason={breaker.forced ? "by hand" : null} />;
}

/** Of the calls of the window of who opened it, how many failed. */
export function Window({ breaker }: { readonly breaker: wire.BreakerShown }) {
  const share = failedShare(breaker);
  if (share === null) return <span className="muted">none counted</span>;
  return (
    <Progress
      label={`Calls of ${breaker.service} that failed`}
      total={breaker.calls}
      parts={[{ tone: "bad", value: breaker.failures, label: "failed" }]}
      text={`${breaker.failures.toLocaleString("en-US")} of ${breaker.calls.toLocaleString("en-US")} failed`}
    />
  );
}

export function Probed({ breaker }: { readonly breaker: wire.BreakerShown }) {
  if (breaker.status === "half_open") return <span>now</span>;
  if (breaker.status === "closed") return <span className="muted">–</span>;
  return breaker.forced || breaker.until === null ? <span className="muted">when it is reset</span> : <Time at={breaker.until} />;
}
