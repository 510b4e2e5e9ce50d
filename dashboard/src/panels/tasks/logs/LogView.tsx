import { memo, useCallback, useEffect, useLayoutEffect, useMemo, useRef, useState, type RefObject } from "react";

import { classes } from "@/ui/classes";

import type { Line } from "./buffer";
import { parts } from "./finding";
import styles from "./Logs.module.css";
import { measure, rowsOf, shownOf, type Heights } from "./window";

interface LogViewProps {
  readonly lines: readonly Line[];
  /** Since the lines before, some were added at the end and nothing else changed. */
  readonly grew: boolean;
  readonly follow: boolean;
  setFollow(follow: boolean): void;
  readonly marked: string;
  /** The line to go to; a new object goes there again. */
  readonly target: { readonly at: number } | null;
  readonly withClaim: boolean;
}

const ROW = 20;

/** Draws the lines that are in sight, however many there are. */
export function LogView({ lines, grew, follow, setFollow, marked, target, withClaim }: LogViewProps) {
  const frame = useRef<HTMLDivElement>(null);
  const ruler = useRef<HTMLDivElement>(null);
  const [top, setTop] = useState(0);
  const { height, columns } = useRoom(frame, ruler, withClaim);
  const heights = useHeights(lines, columns, grew);
  const shown = shownOf(heights, top, height);
  const lastTop = useRef(0);
  const request = useRef(0);

  const toEnd = useCallback(() => {
    const element = frame.current;
    if (element !== null) element.scrollTop = element.scrollHeight;
  }, []);

  useLayoutEffect(() => {
    if (follow) toEnd();
  }, [follow, heights, height, toEnd]);

  useEffect(() => {
    const element = frame.current;
    if (target === null || element === null) return;
    const at = heights.offsets[target.at] ?? 0;
    element.scrollTop = Math.max(0, at - element.clientHeight / 3);
    // Only when somebody goes to another line, not when lines are added.
  }, [target]);

  useEffect(() => () => cancelAnimationFrame(request.current), []);

  function scrolled(): void {
    const element = frame.current;
    if (element === null) return;
    const { scrollTop } = element;
    const atEnd = element.scrollHeight - scrollTop - element.clientHeight < 4;
    if (atEnd) setFollow(true);
    else if (scrollTop < lastTop.current - 1) setFollow(false);
    lastTop.current = scrollTop;
    cancelAnimationFrame(request.current);
    request.current = requestAnimationFrame(() => setTop(scrollTop));
  }

  return (
    <div ref={frame} className={styles.view} onScroll={scrolled} tabIndex={0} role="region" aria-label="Log lines">
      <div ref={ruler} className={classes(styles.line, styles.ruler, withClaim && styles.withClaim)} aria-hidden="true">
        <span className={styles.meta} />
        <span className={styles.text}>
          <span>0123456789</span>
        </span>
      </div>
      <div style={{ height: shown.above }} />
      {lines.slice(shown.first, shown.end).map((line, at) => (
        <LineShown
          key={`${line.claim}.${line.seq}`}
          line={line}
          marked={marked}
          isTarget={target?.at === shown.first + at}
          withClaim={withClaim}
        />
      ))}
      <div style={{ height: shown.below }} />
    </div>
  );
}

interface LineShownProps {
  readonly line: Line;
  readonly marked: string;
  readonly isTarget: boolean;
  readonly withClaim: boolean;
}

const LineShown = memo(function LineShown({ line, marked, isTarget, withClaim }: LineShownProps) {
  return (
    <div className={classes(styles.line, withClaim && styles.withClaim, isTarget && styles.target, styles[toneOf(line.stream)])}>
      <span className={styles.meta} title={`${new Date(line.at).toISOString()}\nclaim ${line.claim}, ${line.stream}`}>
        {withClaim && <span className={styles.claim}>{line.claim}</span>}
        <span className={styles.time}>{clock(line.at)}</span>
        <span className={styles.stream}>{line.stream}</span>
      </span>
      <span className={styles.text}>
        {marked === ""
          ? line.text
          : parts(line.text, marked).map(([text, isMarked], at) => (isMarked ? <mark key={at}>{text}</mark> : text))}
      </span>
    </div>
  );
});

/** Where each line begins; of lines that were only added to, the new ones alone are measured. */
function useHeights(lines: readonly Line[], columns: number, grew: boolean): Heights {
  const before = useRef<{ readonly heights: Heights; readonly lines: readonly Line[]; readonly columns: number } | null>(null);
  return useMemo(() => {
    const { current } = before;
    const goesOn = grew && current?.columns === columns && lines[current.lines.length - 1] === current.lines.at(-1);
    const heights = measure(
      lines.length,
      (at) => ROW * rowsOf(lines[at]?.text ?? "", columns),
      goesOn ? current.heights : undefined,
    );
    before.current = { heights, lines, columns };
    return heights;
  }, [lines, columns]);
}

/** How high the window is, and how many characters of a line fit in it. */
function useRoom(
  frame: RefObject<HTMLDivElement | null>,
  ruler: RefObject<HTMLDivElement | null>,
  withClaim: boolean,
): { readonly height: number; readonly columns: number } {
  const [room, setRoom] = useState({ height: 400, columns: 100 });
  useLayoutEffect(() => {
    const element = frame.current;
    if (element === null || typeof ResizeObserver === "undefined") return undefined;
    const look = (): void => {
      const cell = ruler.current?.querySelector<HTMLElement>(`.${styles.text}`);
      const digits = cell?.firstElementChild?.getBoundingClientRect().width ?? 0;
      const columns = cell == null || digits === 0 ? 100 : Math.max(8, Math.floor((cell.clientWidth * 10) / digits));
      const height = element.clientHeight;
      setRoom((known) => (known.height === height && known.columns === columns ? known : { height, columns }));
    };
    look();
    const observer = new ResizeObserver(look);
    observer.observe(element);
    return () => observer.disconnect();
  }, [frame, ruler, withClaim]);
  return room;
}

function clock(at: string): string {
  const date = new Date(at);
  if (Number.isNaN(date.getTime())) return "";
  const two = (number: number): string => String(number).padStart(2, "0");
  return `${two(date.getHours())}:${two(date.getMinutes())}:${two(date.getSeconds())}.${String(date.getMilliseconds()).padStart(3, "0")}`;
}

function toneOf(stream: string): "bad" | "warn" | "quiet" | "plain" {
  switch (stream.toLowerCase()) {
    case "error":
    case "critical":
    case "stderr":
      return "bad";
    case "warning":
    case "warn":
      return "warn";
    case "debug":
      return "quiet";
    default:
      return "plain";
  }
}
