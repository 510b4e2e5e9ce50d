import { relativeTime, useNow } from "@/ui";

/** How old the depths are that are shown. It grows while nothing is heard. */
export function Counted({ at }: { readonly at: number }) {
  const now = useNow();
  if (at === 0) return null;
  return <span className="muted">Depths counted {relativeTime(new Date(Math.min(at, now)), now)}</span>;
}
