import { useEffect, useId, useRef, useState, type PointerEvent, type ReactNode } from "react";

import { linePath, place, roundTop, shortNumber, ticks, withPauses } from "./scale";
import { localTime } from "./instants";
import styles from "./Chart.module.css";

export interface Series {
  readonly id: string;
  readonly title: string;
  /** 1 to 6: which of the colours of the theme. */
  readonly colour: 1 | 2 | 3 | 4 | 5 | 6;
  /** One for each of the chart's times; null where nothing is known. */
  readonly values: readonly (number | null)[];
}

interface ChartProps {
  readonly title: string;
  /** Milliseconds since the epoch, rising. */
  readonly times: readonly number[];
  readonly series: readonly Series[];
  /** How a value is written: with its unit. */
  format?(value: number): string;
  readonly height?: number;
  /** The area below the line is tinted, for one that stands for an amount. */
  readonly filled?: boolean;
  readonly empty?: ReactNode;
  /** Milliseconds: over a longer pause no line is drawn. */
  readonly longest?: number;
}

/** Of one figure of a label. */
const FIGURE = 6.6;
const RIGHT = 8;
const TOP = 8;
const BOTTOM = 20;

/** Lines over time. Everything that it shows is in a table behind it as well. */
export function Chart({ title, times, series, format = shortNumber, height = 168, filled = false, empty, longest }: ChartProps) {
  const [frame, width] = useWidth();
  const [at, setAt] = useState<number | null>(null);
  const tableId = useId();
  const [asTable, setAsTable] = useState(false);
  const greatest = Math.max(0, ...series.flatMap((each) => each.values.map((value) => value ?? 0)));
  const top = roundTop(greatest);
  const marks = ticks(0, top).map((value) => ({ value, label: format(value) }));
  const left = Math.ceil(10 + FIGURE * Math.max(...marks.map((mark) => mark.label.length)));
  const first = times[0] ?? 0;
  const last = times.at(-1) ?? 1;
  const x = (time: number): number => place(time, [first, last], [left, width - RIGHT]);
  const y = (value: number): number => place(value, [0, top], [height - BOTTOM, TOP]);
  const shown = at !== null && at < times.length ? at : null;
  const shownTime = shown === null ? undefined : times[shown];

  function pointed(event: PointerEvent<SVGSVGElement>): void {
    const box = event.currentTarget.getBoundingClientRect();
    const time = place(event.clientX - box.left, [left, width - RIGHT], [first, last]);
    setAt(nearest(times, time));
  }

  return (
    <figure className={styles.chart}>
      <figcaption className={styles.caption}>
        <h3>{title}</h3>
        <ul className={styles.legend}>
          {series.map((each) => {
            const value = shown === null ? each.values.findLast((found) => found !== null) : each.values[shown];
            return (
              <li key={each.id}>
                <span className={styles.swatch} style={{ background: `var(--series-${each.colour})` }} />
                {each.title} <strong>{value == null ? "–" : format(value)}</strong>
              </li>
            );
          })}
        </ul>
        <button
          type="button"
          className={styles.toggle}
          aria-expanded={asTable}
          aria-controls={tableId}
          onClick={() => setAsTable(!asTable)}
        >
          {asTable ? "Chart" : "Table"}
          <span className="visually-hidden"> of {title}</span>
        </button>
      </figcaption>
      <div ref={frame} className={styles.frame} hidden={asTable}>
        {times.length === 0 ? (
          <div className={styles.empty} style={{ height }}>
            {empty ?? "Nothing was measured in this time."}
          </div>
        ) : (
          <svg
            width={width}
            height={height}
            role="img"
            aria-label={`${title}. ${summary(series, format)}`}
            onPointerMove={pointed}
            onPointerLeave={() => setAt(null)}
          >
            {marks.map(({ value, label }) => (
              <g key={value}>
                <line x1={left} x2={width - RIGHT} y1={y(value)} y2={y(value)} className={styles.grid} />
                <text x={left - 6} y={y(value) + 4} textAnchor="end" className={styles.tick}>
                  {label}
                </text>
              </g>
            ))}
            {timeTicks(first, last, width).map(({ time, label, anchor }) => (
              <text key={time} x={x(time)} y={height - 4} textAnchor={anchor} className={styles.tick}>
                {label}
              </text>
            ))}
            {series.map((each) => {
              const points = withPauses(times, each.values, longest).map(
                ([time, value]) => [x(time), value === null ? null : y(value)] as const,
              );
              const colour = `var(--series-${each.colour})`;
              return (
                <g key={each.id}>
                  {filled && <path d={areaPath(points, y(0))} fill={colour} className={styles.area} />}
                  <path d={linePath(points)} stroke={colour} className={styles.line} />
                  {alone(points).map(([x, y]) => (
                    <circle key={x} cx={x} cy={y} r="2.5" fill={colour} />
                  ))}
                </g>
              );
            })}
            {shownTime !== undefined && (
              <line x1={x(shownTime)} x2={x(shownTime)} y1={TOP} y2={height - BOTTOM} className={styles.cursor} />
            )}
          </svg>
        )}
        {shownTime !== undefined && <div className={styles.moment}>{localTime(new Date(shownTime))}</div>}
      </div>
      <div id={tableId} className={styles.table} hidden={!asTable} tabIndex={asTable ? 0 : -1}>
        <table>
          <caption className="visually-hidden">{title}</caption>
          <thead>
            <tr>
              <th scope="col">Time</th>
              {series.map((each) => (
                <th key={each.id} scope="col">
                  {each.title}
                </th>
              ))}
            </tr>
          </thead>
          {/* A table of hundreds of rows that nobody looks at would be built anew at every move. */}
          <tbody>
            {asTable &&
              times
                .map((time, row) => (
                  <tr key={time}>
                    <th scope="row">{localTime(new Date(time))}</th>
                    {series.map((each) => {
                      const value = each.values[row] ?? null;
                      return <td key={each.id}>{value === null ? "–" : format(value)}</td>;
                    })}
                  </tr>
                ))
                .reverse()}
          </tbody>
        </table>
      </div>
    </figure>
  );
}

function useWidth(): [React.RefObject<HTMLDivElement | null>, number] {
  const frame = useRef<HTMLDivElement>(null);
  const [width, setWidth] = useState(480);
  useEffect(() => {
    const element = frame.current;
    if (element === null || typeof ResizeObserver === "undefined") return undefined;
    const observer = new ResizeObserver(([entry]) => {
      const found = Math.floor(entry?.contentRect.width ?? 0);
      if (found > 0) setWidth(found);
    });
    observer.observe(element);
    return () => observer.disconnect();
  }, []);
  return [frame, width];
}

/** The place of the time that is nearest. */
export function nearest(times: readonly number[], time: number): number {
  let low = 0;
  let high = times.length - 1;
  while (low < high) {
    const middle = (low + high) >> 1;
    const here = times[middle] ?? 0;
    const next = times[middle + 1] ?? here;
    if (Math.abs(next - time) <= Math.abs(here - time)) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** Points that no line goes through, because nothing is known on either side. */
export function alone(points: readonly (readonly [number, number | null])[]): readonly (readonly [number, number])[] {
  return points.flatMap(([x, y], at) => {
    const hasNeighbour = (points[at - 1]?.[1] ?? null) !== null || (points[at + 1]?.[1] ?? null) !== null;
    return y === null || hasNeighbour ? [] : [[x, y] as const];
  });
}

function areaPath(points: readonly (readonly [number, number | null])[], floor: number): string {
  let path = "";
  let run: (readonly [number, number])[] = [];
  const close = (): void => {
    const start = run[0];
    const end = run.at(-1);
    if (start !== undefined && end !== undefined && run.length > 1) {
      path += `M${start[0].toFixed(1)} ${floor}${linePath(run).replace("M", "L")}L${end[0].toFixed(1)} ${floor}Z`;
    }
    run = [];
  };
  for (const [x, y] of points) {
    if (y === null) close();
    else run.push([x, y]);
  }
  close();
  return path;
}

interface TimeTick {
  readonly time: number;
  readonly label: string;
  readonly anchor: "start" | "middle" | "end";
}

function timeTicks(first: number, last: number, width: number): readonly TimeTick[] {
  // At one moment there is one label: two would stand on top of each other.
  const count = last > first ? Math.max(2, Math.floor(width / 130)) : 1;
  const options: Intl.DateTimeFormatOptions =
    last - first > 36 * 3600_000
      ? { month: "short", day: "numeric", hour: "2-digit", hour12: false }
      : { hour: "2-digit", minute: "2-digit", hour12: false, ...(last - first < 600_000 ? { second: "2-digit" } : {}) };
  const format = new Intl.DateTimeFormat(undefined, options);
  return Array.from({ length: count }, (_, at) => {
    const time = first + ((last - first) * at) / Math.max(1, count - 1);
    return { time, label: format.format(time), anchor: at === 0 ? "start" : at === count - 1 ? "end" : "middle" };
  });
}

function summary(series: readonly Series[], format: (value: number) => string): string {
  return series
    .map((each) => {
      const known = each.values.filter((value) => value !== null);
      const last = known.at(-1);
      if (last === undefined) return `${each.title}: nothing.`;
      return `${each.title}: now ${format(last)}, at most ${format(Math.max(...known))}.`;
    })
    .join(" ");
}
