/** What stands in the second line of a box. */

import { durationText, wordsOf } from "@/ui";

import type { Group, Member } from "../outline";

/** Seconds of its last execution, or since it began; null where it never did. */
export function memberSeconds(member: Member, now: number): number | null {
  if (member.took !== null) return member.took;
  if (member.started_at === null || member.finished_at !== null) return null;
  return Math.max(0, Math.floor((now - Date.parse(member.started_at)) / 1000));
}

export function memberLine(member: Member, now: number): string {
  const seconds = memberSeconds(member, now);
  const parts = [wordsOf(member.state)];
  if (member.attempts > 1) parts.push(`${member.attempts} attempts`);
  if (seconds !== null) parts.push(durationText(seconds));
  return parts.join(" · ");
}

/** Of a group of one whose member was not read. */
export function singleLine(group: Group): string {
  const [state] = Object.keys(group.states);
  const parts = [wordsOf(state ?? "pending")];
  if (group.took.mean !== null) parts.push(durationText(group.took.mean));
  return parts.join(" · ");
}

/** "90,000 completed · 12 failed": two states at most, what failed always among them. */
export function groupLine(group: Group): string {
  const counts = Object.entries(group.states).filter(([, count]) => count > 0);
  counts.sort((one, other) => Number(other[0] === "failed") - Number(one[0] === "failed") || other[1] - one[1]);
  return counts
    .slice(0, 2)
    .map(([state, count]) => `${count.toLocaleString()} ${wordsOf(state)}`)
    .join(" · ");
}
