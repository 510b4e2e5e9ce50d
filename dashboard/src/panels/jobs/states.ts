/** States of a job's tasks, gathered to what a bar, a bitmap or a legend can show. */

import { toneOf, type Tone } from "@/ui";

/** How many are in which state; only what there is. */
export type States = Readonly<Partial<Record<string, number>>>;

const ENDED: ReadonlySet<string> = new Set(["completed", "failed", "cancelled", "rejected"]);

export function hasEnded(state: string): boolean {
  return ENDED.has(state);
}

/** Side by side in a bar, from what is done to what has not begun. */
export const TONES = ["good", "bad", "ended", "active", "warn", "waiting", "blocked"] as const satisfies readonly Tone[];

export const TONE_WORDS: Readonly<Record<Tone, string>> = {
  good: "completed",
  bad: "failed",
  ended: "cancelled",
  active: "running",
  warn: "needs a look",
  waiting: "waiting",
  blocked: "blocked",
};

export interface ToneCount {
  readonly tone: Tone;
  readonly count: number;
}

/** How many of each tone, without those that have none. */
export function tonesOf(states: States): readonly ToneCount[] {
  const counts = new Map<Tone, number>();
  for (const [state, count = 0] of Object.entries(states)) {
    const tone = toneOf(state);
    counts.set(tone, (counts.get(tone) ?? 0) + count);
  }
  return TONES.flatMap((tone) => {
    const count = counts.get(tone) ?? 0;
    return count > 0 ? [{ tone, count }] : [];
  });
}

export function endedOf(states: States): number {
  return Object.entries(states).reduce((sum, [state, count = 0]) => sum + (hasEnded(state) ? count : 0), 0);
}

/** The tone that says most about a group: what failed, else what needs somebody, else what moves, else what most have. */
export function leadingTone(states: States): Tone {
  const counts = tonesOf(states);
  for (const tone of ["bad", "warn", "active"] as const) {
    if (counts.some((each) => each.tone === tone)) return tone;
  }
  return counts.reduce<ToneCount>((most, each) => (each.count > most.count ? each : most), { tone: "waiting", count: 0 }).tone;
}

/** "90 completed, 10 running": states by their own words, the most first. */
export function statesText(states: States): string {
  return Object.entries(states)
    .map(([state, count = 0]) => [state, count] as const)
    .filter(([, count]) => count > 0)
    .sort((one, other) => other[1] - one[1])
    .map(([state, count]) => `${count.toLocaleString()} ${state.replaceAll("_", " ")}`)
    .join(", ");
}

export function sumOf(all: Iterable<States>): States {
  const sums: Partial<Record<string, number>> = {};
  for (const states of all) {
    for (const [state, count = 0] of Object.entries(states)) {
      sums[state] = (sums[state] ?? 0) + count;
    }
  }
  return sums;
}
