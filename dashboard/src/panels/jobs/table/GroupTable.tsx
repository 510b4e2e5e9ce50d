import { useEffect, useMemo, useRef, useState, type KeyboardEvent } from "react";
import { Link, useNavigate } from "react-router";

import type { wire } from "@/api";
import { Button, Duration, durationText, Progress, StateBadge, Time } from "@/ui";
import { classes } from "@/ui/classes";
import { ChevronIcon } from "@/ui/icons";

import { groupName, groupTask, type Group, type Member, type Outline } from "../outline";
import type { Pages } from "../paging";
import { endedOf, hasEnded, statesText } from "../states";
import { memberName } from "../graph/scene";
import { rowsOf, stepTo, type Row } from "./rows";
import styles from "./GroupTable.module.css";

interface GroupTableProps {
  readonly jobId: number;
  readonly outline: Outline;
  readonly unfolded: ReadonlySet<string>;
  setUnfolded(unfolded: ReadonlySet<string>): void;
  readonly pages: Pages<Member>;
}

/** More rows than this are shown when they are asked for: a page of thousands is slow for everybody. */
const AT_FIRST = 200;

/** All that the graph shows, as rows: arrows move, right unfolds, left folds, Enter opens. */
export default function GroupTable({ jobId, outline, unfolded, setUnfolded, pages }: GroupTableProps) {
  const navigate = useNavigate();
  const body = useRef<HTMLTableSectionElement>(null);
  const [most, setMost] = useState(AT_FIRST);
  const [active, setActive] = useState<string | null>(null);
  const version = pages.getVersion();
  const all = useMemo(() => rowsOf(outline, unfolded, pages.of), [outline, unfolded, pages, version]);
  const rows = all.slice(0, most);
  const focusable = rows.some((row) => row.key === active) ? active : rows[0]?.key;

  useEffect(() => {
    if (outline.members !== null) return;
    for (const group of outline.groups) if (group.count > 1 && unfolded.has(group.id)) pages.open(group.id);
  }, [outline, unfolded, pages]);

  function toggle(group: string): void {
    const next = new Set(unfolded);
    if (!next.delete(group)) next.add(group);
    setUnfolded(next);
  }

  function pressed(event: KeyboardEvent<HTMLTableRowElement>, row: Row, at: number): void {
    if (event.target !== event.currentTarget || event.ctrlKey || event.metaKey || event.altKey) return;
    const to = stepTo(rows, at, event.key);
    if (to !== null) {
      setActive(rows[to]?.key ?? null);
      body.current?.rows[to]?.focus();
    } else if (row.kind === "group" && (event.key === "ArrowRight") !== row.isOpen && event.key.startsWith("Arrow")) {
      toggle(row.group.id);
    } else if (event.key === "Enter") {
      if (row.kind === "task") void navigate(`/tasks/${row.id}`);
      else if (row.kind === "group") toggle(row.group.id);
      else pages.more(row.group.id);
    } else return;
    event.preventDefault();
    event.stopPropagation();
  }

  return (
    <div className={styles.frame}>
      <table role="treegrid" aria-label="Tasks of the job, by group" className={styles.table}>
        <thead>
          <tr>
            <th scope="col">Task</th>
            <th scope="col">Level</th>
            <th scope="col">State</th>
            <th scope="col" className={styles.right}>
              Attempts
            </th>
            <th scope="col">Started</th>
            <th scope="col" className={styles.right}>
              Duration
            </th>
            <th scope="col">Error</th>
          </tr>
        </thead>
        <tbody ref={body}>
          {rows.map((row, at) => (
            <tr
              key={row.key}
              aria-level={row.depth}
              aria-expanded={row.kind === "group" ? row.isOpen : undefined}
              tabIndex={row.key === focusable ? 0 : -1}
              className={classes(row.depth === 2 && styles.member)}
              onFocus={() => setActive(row.key)}
              onKeyDown={(event) => pressed(event, row, at)}
            >
              {row.kind === "group" && <GroupCells jobId={jobId} group={row.group} isOpen={row.isOpen} toggle={toggle} />}
              {row.kind === "task" && <TaskCells id={row.id} group={row.group} member={row.member} />}
              {row.kind === "more" && (
                <td colSpan={7} className={styles.more}>
                  {row.list.problem !== null && (
                    <span role="alert" className={styles.bad}>
                      Not read: {row.list.problem.detail ?? row.list.problem.title}{" "}
                    </span>
                  )}
                  <Button kind="quiet" busy={row.list.isReading} onClick={() => pages.more(row.group.id)}>
                    {row.list.isReading
                      ? "Reading…"
                      : `Show more (${row.list.items.length.toLocaleString()} of ${row.group.count.toLocaleString()})`}
                  </Button>
                </td>
              )}
            </tr>
          ))}
        </tbody>
      </table>
      {all.length > most && (
        <div className={styles.rest}>
          <Button onClick={() => setMost(most * 3)}>
            Show more rows ({most.toLocaleString()} of {all.length.toLocaleString()})
          </Button>
        </div>
      )}
    </div>
  );
}

interface GroupCellsProps {
  readonly jobId: number;
  readonly group: Group;
  readonly isOpen: boolean;
  toggle(group: string): void;
}

function GroupCells({ jobId, group, isOpen, toggle }: GroupCellsProps) {
  const failed = group.states.failed ?? 0;
  const found = new URLSearchParams({ q: `job:${jobId} state:failed${group.task === null ? "" : ` name:${group.task}`}` }).toString();
  return (
    <>
      <td data-title="Group">
        <button
          type="button"
          tabIndex={-1}
          className={classes(styles.fold, isOpen && styles.open)}
          onClick={() => toggle(group.id)}
          aria-label={`${isOpen ? "Fold" : "Unfold"} ${groupName(group)}`}
        >
          <ChevronIcon />
        </button>
        <strong title={groupTask(group)}>{groupName(group)}</strong> <span className="muted">× {group.count.toLocaleString()}</span>
      </td>
      <td data-title="Level">{group.level}</td>
      <td data-title="States">
        <div className={styles.states}>
          <Progress
            label={`Progress of ${groupName(group)}`}
            total={group.count}
            parts={[
              { tone: "good", value: group.states.completed ?? 0, label: "completed" },
              { tone: "bad", value: failed, label: "failed" },
              { tone: "ended", value: (group.states.cancelled ?? 0) + (group.states.rejected ?? 0), label: "cancelled" },
              { tone: "active", value: (group.states.running ?? 0) + (group.states.claimed ?? 0), label: "running" },
            ]}
            text={`${endedOf(group.states).toLocaleString()} of ${group.count.toLocaleString()}`}
          />
          <span className="muted">{statesText(group.states)}</span>
          {failed > 0 && <Link to={`/tasks?${found}`}>show the {failed.toLocaleString()} that failed</Link>}
        </div>
      </td>
      <td data-title="Attempts" className={styles.right} />
      <td data-title="Started">
        <Time at={group.started_at} />
      </td>
      <td data-title="Duration" className={styles.right}>
        {group.took.mean === null ? (
          <span className="muted">–</span>
        ) : (
          <span title={`at most ${durationText(group.took.max ?? 0)}`}>⌀ {durationText(group.took.mean)}</span>
        )}
      </td>
      <td data-title="Error" className={styles.error}>
        {group.error}
      </td>
    </>
  );
}

interface TaskCellsProps {
  readonly id: number;
  readonly group: Group;
  readonly member: Member | null;
}

function TaskCells({ id, group, member }: TaskCellsProps) {
  // Of a group of one its states are one as well.
  const [only] = Object.keys(group.states) as wire.TaskState[];
  const state = member?.state ?? only ?? "pending";
  const started = member?.started_at ?? group.started_at;
  return (
    <>
      <td data-title="Task">
        <Link to={`/tasks/${id}`} tabIndex={-1} className={styles.name} title={groupTask(group)}>
          {member === null ? groupName(group) : memberName(member)}
        </Link>{" "}
        <span className="muted">#{id}</span>
      </td>
      <td data-title="Level">{group.level}</td>
      <td data-title="State">
        <StateBadge state={state} reason={member?.reason} />
      </td>
      <td data-title="Attempts" className={styles.right}>
        {member?.attempts ?? ""}
      </td>
      <td data-title="Started">
        <Time at={started} />
      </td>
      <td data-title="Duration" className={styles.right}>
        <Duration seconds={member?.took ?? group.took.mean} since={hasEnded(state) ? null : started} />
      </td>
      <td data-title="Error" className={styles.error} title={member?.error ?? group.error ?? undefined}>
        {member === null ? group.error : member.error}
      </td>
    </>
  );
}
