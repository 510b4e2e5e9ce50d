import { Badge, durationText, useNow } from "@/ui";

import { ageNow, toneOfAge } from "./beating";

interface HeartbeatProps {
  /** Seconds, as the server said. */
  readonly age: number;
  readonly lease: number;
  /** When it said so, in milliseconds. */
  readonly saidAt: number;
}

/** How long a worker has not been heard of, still counting. */
export function Heartbeat({ age, lease, saidAt }: HeartbeatProps) {
  const seconds = ageNow(age, saidAt, useNow());
  return (
    <Badge tone={toneOfAge(seconds, lease)} title={`After ${durationText(lease)} without one, others take over its tasks`}>
      {durationText(Math.floor(seconds))} ago
    </Badge>
  );
}
