/** A job as rows of a table in which groups can be unfolded. */

import type { Group, Member, Outline } from "../outline";
import type { PagedList } from "../paging";

export type Row =
  | { readonly kind: "group"; readonly key: string; readonly group: Group; readonly isOpen: boolean; readonly depth: 1 }
  | { readonly kind: "task"; readonly key: string; readonly group: Group; readonly member: Member | null; readonly id: number; readonly depth: 1 | 2 }
  | { readonly kind: "more"; readonly key: string; readonly group: Group; readonly list: PagedList<Member>; readonly depth: 2 };

/** Groups by their level; below those that are unfolded their members, as far as they were read. */
export function rowsOf(
  outline: Outline,
  unfolded: ReadonlySet<string>,
  listOf: (group: string) => PagedList<Member>,
): readonly Row[] {
  const groups = [...outline.groups].sort((one, other) => one.level - other.level);
  return groups.flatMap((group): Row[] => {
    const whole = outline.members?.get(group.id) ?? null;
    if (group.count === 1) {
      const member = whole?.[0] ?? null;
      return [{ kind: "task", key: `#${group.first}`, group, member, id: member?.id ?? group.first, depth: 1 }];
    }
    const isOpen = unfolded.has(group.id);
    const head: Row = { kind: "group", key: group.id, group, isOpen, depth: 1 };
    if (!isOpen) return [head];
    const list = whole === null ? listOf(group.id) : null;
    const members = whole ?? list?.items ?? [];
    const rows: Row[] = members.map((member) => ({
      kind: "task",
      key: `#${member.id}`,
      group,
      member,
      id: member.id,
      depth: 2,
    }));
    const rest: Row[] =
      list !== null && (list.hasMore || list.isReading || list.problem !== null)
        ? [{ kind: "more", key: `${group.id} more`, group, list, depth: 2 }]
        : [];
    return [head, ...rows, ...rest];
  });
}

/** Where a key leads in such a table: the place of the row that gets the focus. */
export function stepTo(rows: readonly Row[], from: number, key: string): number | null {
  const last = rows.length - 1;
  switch (key) {
    case "ArrowDown":
      return Math.min(last, from + 1);
    case "ArrowUp":
      return Math.max(0, from - 1);
    case "Home":
      return 0;
    case "End":
      return last;
    case "ArrowLeft": {
      // From a member to its group.
      if (rows[from]?.depth !== 2) return null;
      for (let at = from; at >= 0; at--) if (rows[at]?.depth === 1) return at;
      return null;
    }
    default:
      return null;
  }
}
