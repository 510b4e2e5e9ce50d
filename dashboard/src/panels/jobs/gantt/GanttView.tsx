import { useQuery } from "@tanstack/react-query";
import { useCallback, useEffect, useMemo, useRef, useState, type KeyboardEvent, type PointerEvent } from "react";
import { Link } from "react-router";

import type { wire } from "@/api";
import { Button, durationText, Empty, IconButton, localTime, Problem, Skeleton, useNow, utcTime, wordsOf } from "@/ui";
import { classes } from "@/ui/classes";
import { ChevronIcon, PlusIcon } from "@/ui/icons";

import { isOver } from "../following";
import { Glyph } from "../glyphs";
import { FitIcon, MinusIcon } from "../graph/controls";
import { rowsSeen } from "../logs/lines";
import { groupTask, type Group } from "../outline";
import { pollAfter } from "../pace";
import { usePages } from "../paging";
import { PAGE, readGroups, readTimed, type Groups, type Timed } from "../reading";
import { hasEnded, leadingTone, statesText } from "../states";
import { barsOfGroup, barsOfTask, extentOf, ganttRows, listsOf, rowName, type GanttBar, type GanttRow } from "./rows";
import { axisTicks, keptIn, lengthOf, movedSpan, partAt, wholeSpan, zoomedSpan, type Span } from "./scale";
import styles from "./GanttView.module.css";

const ROW = 30;
const ZOOM = 1.4;
/** Groups of at most so many are unfolded at first. */
const FEW = 12;

/** When each task ran. Groups are one bar until they are unfolded; only the rows that are seen are in the page. */
export default function GanttView({ job }: { readonly job: wire.JobShown }) {
  const live = !isOver(job);
  const took = useRef(0);
  const groups = useQuery({
    queryKey: ["job", job.id, "groups"],
    queryFn: async ({ signal }): Promise<Groups> => {
      const began = performance.now();
      const read = await readGroups(job.id, signal);
      took.current = performance.now() - began;
      return read;
    },
    refetchInterval: () => (live ? pollAfter(took.current) : false),
  });
  const isSmall = job.total <= PAGE;
  const whole = useQuery({
    queryKey: ["job", job.id, "gantt"],
    queryFn: ({ signal }) => readTimed(job.id, null, null, signal),
    enabled: isSmall,
    refetchInterval: live ? pollAfter(0) : false,
  });
  const pages = usePages<Timed>(
    `gantt ${job.id}`,
    (group, cursor, signal) => readTimed(job.id, group, cursor, signal),
    (timed) => !hasEnded(timed.state),
  );
  const [folds, setFolds] = useState<ReadonlyMap<string, boolean>>(new Map());
  const unfolded = useMemo(
    () =>
      new Set(
        groups.data?.groups
          .filter((group) => folds.get(group.id) ?? (isSmall && group.count > 1 && group.count <= FEW))
          .map((group) => group.id),
      ),
    [groups.data, folds, isSmall],
  );
  const isFirst = useRef(true);
  useEffect(() => {
    if (groups.data === undefined || isSmall) return;
    const wanted = groups.data.groups.filter((group) => group.count > 1 && unfolded.has(group.id)).map((group) => group.id);
    for (const group of wanted) pages.open(group);
    if (!isFirst.current) void pages.again(wanted);
    isFirst.current = false;
  }, [groups.data, unfolded, isSmall, pages]);

  const version = pages.getVersion();
  const rows = useMemo(() => {
    const listOf = whole.data === undefined ? pages.of : listsOf(whole.data.items);
    return ganttRows(groups.data?.groups ?? [], unfolded, listOf);
  }, [groups.data, unfolded, pages, version, whole.data]);

  const problem = groups.error ?? whole.error;
  const retry = (): void => {
    void groups.refetch();
    if (isSmall) void whole.refetch();
  };
  if (groups.data === undefined || (isSmall && whole.data === undefined)) {
    if (problem === null) return <Skeleton lines={10} />;
    return <Problem error={problem} title="The times could not be read" retry={retry} />;
  }
  if (rows.length === 0 || job.started_at === null) {
    return (
      <Empty title="Nothing has run yet">
        When a worker takes the first task, its bar appears here. Is there one? <Link to="/workers">Look at the workers</Link>
      </Empty>
    );
  }
  return (
    <>
      {problem !== null && <Problem error={problem} title="What is shown is not up to date" retry={retry} />}
      <Gantt
        job={job}
        groups={groups.data.groups}
        rows={rows}
        more={(group) => pages.more(group)}
        fold={(group, open) => setFolds((known) => new Map(known).set(group, open))}
      />
    </>
  );
}

interface GanttProps {
  readonly job: wire.JobShown;
  readonly groups: readonly Group[];
  readonly rows: readonly GanttRow[];
  more(group: string): void;
  fold(group: string, open: boolean): void;
}

function Gantt({ job, groups, rows, more, fold }: GanttProps) {
  const clock = useNow();
  const live = !isOver(job);
  // A job that is over does not grow: nothing is drawn anew each second.
  const now = live ? clock : Date.parse(job.completed_at ?? job.created_at);
  const { since, until } = extentOf(job, groups, now);
  const whole = useMemo(() => wholeSpan(since, until), [since, until]);
  const [chosen, setChosen] = useState<Span | null>(null);
  const span = chosen === null ? whole : keptIn(chosen, whole);
  const box = useRef<HTMLDivElement>(null);
  const axis = useRef<HTMLDivElement>(null);
  const [seen, setSeen] = useState({ top: 0, height: 600 });
  const width = useWidth(axis);
  const { from, to } = rowsSeen(seen.top, seen.height, ROW, rows.length, 6);
  const hands = useRef(new Map<number, number>());

  const latest = useRef({ span, whole });
  useEffect(() => {
    latest.current = { span, whole };
  });
  const look = useCallback((change: (span: Span, whole: Span) => Span) => {
    const next = change(latest.current.span, latest.current.whole);
    latest.current = { ...latest.current, span: next };
    setChosen(lengthOf(next) >= lengthOf(latest.current.whole) * 0.999 ? null : next);
  }, []);
  const partOf = useCallback((clientX: number): number => {
    const place = axis.current?.getBoundingClientRect();
    return place === undefined || place.width === 0 ? 0.5 : Math.min(1, Math.max(0, (clientX - place.left) / place.width));
  }, []);

  // React listens passively: a page that zooms or goes back in its history instead would be the wrong answer.
  useEffect(() => {
    const element = box.current;
    if (element === null) return undefined;
    const wheel = (event: WheelEvent): void => {
      if (event.ctrlKey || event.metaKey) {
        event.preventDefault();
        const at = partOf(event.clientX);
        look((before, all) => zoomedSpan(before, at, Math.exp(event.deltaY / 300), all));
        return;
      }
      const sideways = event.shiftKey ? event.deltaY : event.deltaX;
      if (Math.abs(sideways) <= Math.abs(event.shiftKey ? event.deltaX : event.deltaY)) return;
      event.preventDefault();
      const across = axis.current?.clientWidth ?? 600;
      look((before, all) => movedSpan(before, sideways / across, all));
    };
    element.addEventListener("wheel", wheel, { passive: false });
    return () => element.removeEventListener("wheel", wheel);
  }, [look, partOf]);

  useEffect(() => {
    const element = box.current;
    if (element === null) return undefined;
    const measure = (): void => setSeen({ top: element.scrollTop, height: element.clientHeight });
    measure();
    if (typeof ResizeObserver === "undefined") return undefined;
    const observer = new ResizeObserver(measure);
    observer.observe(element);
    return () => observer.disconnect();
  }, []);

  function down(event: PointerEvent<HTMLDivElement>): void {
    if (event.button !== 0 || (event.target as Element).closest("a, button, [data-names]") !== null) return;
    event.currentTarget.setPointerCapture(event.pointerId);
    hands.current.set(event.pointerId, event.clientX);
  }

  function move(event: PointerEvent<HTMLDivElement>): void {
    const before = hands.current.get(event.pointerId);
    if (before === undefined) return;
    const across = Math.max(1, axis.current?.clientWidth ?? 1);
    const others = [...hands.current].filter(([id]) => id !== event.pointerId);
    hands.current.set(event.pointerId, event.clientX);
    const other = others[0]?.[1];
    if (other === undefined) {
      look((present, all) => movedSpan(present, (before - event.clientX) / across, all));
      return;
    }
    const factor = Math.max(8, Math.abs(before - other)) / Math.max(8, Math.abs(event.clientX - other));
    look((present, all) => zoomedSpan(present, partOf((event.clientX + other) / 2), factor, all));
  }

  function up(event: PointerEvent<HTMLDivElement>): void {
    hands.current.delete(event.pointerId);
  }

  function pressed(event: KeyboardEvent<HTMLDivElement>): void {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "ArrowLeft") look((before, all) => movedSpan(before, -0.1, all));
    else if (event.key === "ArrowRight") look((before, all) => movedSpan(before, 0.1, all));
    else if (event.key === "+" || event.key === "=") look((before, all) => zoomedSpan(before, 0.5, 1 / ZOOM, all));
    else if (event.key === "-") look((before, all) => zoomedSpan(before, 0.5, ZOOM, all));
    else if (event.key === "0" || event.key === "f") setChosen(null);
    else return;
    event.preventDefault();
    event.stopPropagation();
  }

  const start = Date.parse(job.started_at ?? job.created_at);
  const ticks = axisTicks(span, start, Math.max(2, Math.floor(width / 90)));
  return (
    <div className={styles.gantt}>
      <div className={styles.tools}>
        <div className={styles.buttons} role="toolbar" aria-label="Look of the time axis">
          <IconButton label="Shorter time" icon={<PlusIcon />} onClick={() => look((before, all) => zoomedSpan(before, 0.5, 1 / ZOOM, all))} />
          <IconButton label="Longer time" icon={<MinusIcon />} onClick={() => look((before, all) => zoomedSpan(before, 0.5, ZOOM, all))} />
          <IconButton label="The whole time" icon={<FitIcon />} onClick={() => setChosen(null)} />
        </div>
        <span className="muted">
          {durationText(lengthOf(span) / 1000)} from{" "}
          <time dateTime={new Date(span.from).toISOString()} title={utcTime(new Date(span.from))}>
            {localTime(new Date(span.from))}
          </time>
        </span>
      </div>
      <div
        ref={box}
        className={styles.box}
        tabIndex={0}
        role="region"
        aria-label="When each task ran"
        aria-describedby="gantt-keys"
        onScroll={(event) => setSeen({ top: event.currentTarget.scrollTop, height: event.currentTarget.clientHeight })}
        onPointerDown={down}
        onPointerMove={move}
        onPointerUp={up}
        onPointerCancel={up}
        onKeyDown={pressed}
      >
        <div className={styles.axis} aria-hidden="true">
          <div className={styles.corner}>since the start</div>
          <div ref={axis} className={styles.ticks}>
            {ticks.map((tick) => (
              <span
                key={tick.time}
                style={{ left: `${partAt(span, tick.time) * 100}%` }}
                title={`${localTime(new Date(tick.time))} here\n${utcTime(new Date(tick.time))}`}
              >
                {tick.label}
              </span>
            ))}
          </div>
        </div>
        <ol className={styles.rows} style={{ height: rows.length * ROW }} aria-label={`${rows.length} rows`}>
          {rows.slice(from, to).map((row, at) => (
            <li
              key={row.key}
              className={classes(styles.row, row.kind === "group" && styles.isGroup)}
              style={{ top: (from + at) * ROW }}
              aria-setsize={rows.length}
              aria-posinset={from + at + 1}
            >
              <div className={classes(styles.names, row.kind === "task" && row.isInGroup && styles.inside)} data-names="">
                <RowName row={row} fold={fold} more={() => more(row.group.id)} />
                {(row.kind !== "task" || !row.isInGroup) && row.kind !== "more" && (
                  <span className={styles.level} title={`Level ${row.group.level}`}>
                    L{row.group.level}
                  </span>
                )}
              </div>
              <div className={styles.track}>
                {ticks.map((tick) => (
                  <i key={tick.time} style={{ left: `${partAt(span, tick.time) * 100}%` }} />
                ))}
                {barsOf(row, now).map((bar, place, bars) => (
                  <Bar
                    key={`${bar.kind} ${bar.from}`}
                    bar={bar}
                    span={span}
                    row={row}
                    width={width}
                    isLast={place === bars.length - 1}
                  />
                ))}
              </div>
            </li>
          ))}
        </ol>
      </div>
      <p id="gantt-keys" className={styles.keys}>
        Drag to move in time, Ctrl and scroll (or pinch) to zoom. Keys: left and right move, + and − zoom, 0 shows the whole time. The same
        figures are in the table of tasks.
      </p>
    </div>
  );
}

function barsOf(row: GanttRow, now: number): readonly GanttBar[] {
  if (row.kind === "task") return barsOfTask(row.timed, now);
  return row.kind === "more" ? [] : barsOfGroup(row.group, now);
}

interface RowNameProps {
  readonly row: GanttRow;
  fold(group: string, open: boolean): void;
  more(): void;
}

function RowName({ row, fold, more }: RowNameProps) {
  const name = rowName(row);
  switch (row.kind) {
    case "group":
      return (
        <button
          type="button"
          className={classes(styles.fold, row.isOpen && styles.open)}
          aria-expanded={row.isOpen}
          title={`${groupTask(row.group)}: ${statesText(row.group.states)}`}
          onClick={() => fold(row.group.id, !row.isOpen)}
        >
          <ChevronIcon />
          <span className={styles.name}>{name}</span> <span className="muted">× {row.group.count.toLocaleString()}</span>
        </button>
      );
    case "more":
      return (
        <Button kind="quiet" busy={row.list.isReading} onClick={more}>
          {row.list.isReading
            ? "Reading…"
            : row.list.problem !== null
              ? "Not read: try again"
              : `Show more (${row.list.items.length.toLocaleString()} of ${row.group.count.toLocaleString()})`}
        </Button>
      );
    default: {
      const id = row.kind === "task" ? row.timed.id : row.group.first;
      const tone = row.kind === "task" ? undefined : leadingTone(row.group.states);
      return (
        <Link to={`/tasks/${id}`} className={styles.link} title={`${groupTask(row.group)} #${id}`}>
          {tone !== undefined && <Glyph tone={tone} size={12} />}
          <span className={styles.name}>{name}</span>
          {row.kind === "task" && <span className="visually-hidden"> {wordsOf(row.timed.state)}</span>}
        </Link>
      );
    }
  }
}

interface BarProps {
  readonly bar: GanttBar;
  readonly span: Span;
  readonly row: GanttRow;
  /** Pixels of the whole track. */
  readonly width: number;
  readonly isLast: boolean;
}

/** Pixels that a length of time needs, with its shape before it. */
const LABEL = 76;

function Bar({ bar, span, row, width, isLast }: BarProps) {
  const left = partAt(span, bar.from);
  const right = partAt(span, bar.to);
  if (right < 0 || left > 1) return null;
  // A little beyond both sides is enough to be drawn: a browser gives up on boxes of millions of pixels.
  const from = Math.max(-0.5, left);
  const to = Math.min(1.5, right);
  const seconds = (bar.to - bar.from) / 1000;
  const isInside = (to - from) * width >= LABEL;
  const said =
    bar.kind === "wait"
      ? `waited ${durationText(seconds)}`
      : bar.kind === "sum"
        ? `${durationText(seconds)} from the first start; ${statesText(row.group.states)}`
        : `${bar.attempt > 1 ? `attempt ${bar.attempt}, ` : ""}${wordsOf(bar.state || "ran")}, ${durationText(seconds)}`;
  return (
    <div
      className={classes(styles.bar, styles[bar.kind], styles[bar.tone])}
      style={{ left: `${from * 100}%`, width: `${(to - from) * 100}%` }}
      title={`${rowName(row)}: ${said}\nfrom ${localTime(new Date(bar.from))} here\n${utcTime(new Date(bar.from))}`}
    >
      {bar.kind !== "wait" && (isInside || isLast) && (
        <span className={classes(styles.label, !isInside && (to > 0.8 ? styles.before : styles.behind))} aria-hidden="true">
          <Glyph tone={bar.tone} size={11} />
          {durationText(seconds)}
        </span>
      )}
      <span className="visually-hidden">{said}</span>
    </div>
  );
}

function useWidth(element: React.RefObject<HTMLElement | null>): number {
  const [width, setWidth] = useState(600);
  useEffect(() => {
    const found = element.current;
    if (found === null || typeof ResizeObserver === "undefined") return undefined;
    const observer = new ResizeObserver(() => setWidth(found.clientWidth));
    observer.observe(found);
    return () => observer.disconnect();
  }, [element]);
  return width;
}
