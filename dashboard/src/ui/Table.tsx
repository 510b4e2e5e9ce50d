import { useRef, useState, type KeyboardEvent, type MouseEvent, type ReactNode } from "react";
import { Link, useNavigate } from "react-router";

import { Button } from "./Button";
import { classes } from "./classes";
import { Problem } from "./Notice";
import styles from "./Table.module.css";

export interface Column<Row> {
  readonly id: string;
  readonly title: string;
  cell(row: Row): ReactNode;
  /** Numbers stand at the right. */
  readonly align?: "right";
  /** What may be left out where there is little room. */
  readonly hide?: "narrow" | "medium";
  /** Takes the room that the others leave, and cuts its text. */
  readonly wide?: boolean;
}

export interface Selection {
  readonly selected: ReadonlySet<string>;
  change(selected: ReadonlySet<string>): void;
}

interface TableProps<Row> {
  /** What the rows are, for those who do not see them. */
  readonly label: string;
  readonly columns: readonly Column<Row>[];
  readonly rows: readonly Row[];
  keyOf(row: Row): string | number;
  /** Where a row leads; its first cell is the link. */
  linkOf?(row: Row): string;
  readonly selection?: Selection;
  /** How a row is called when it is selected. */
  nameOf?(row: Row): string;
  /** What is said when there are none. */
  readonly empty: ReactNode;
  /** From useListing(): what it is waiting for, what went wrong, and what comes behind. */
  readonly listing?: {
    readonly isPending: boolean;
    readonly isFetching: boolean;
    readonly problem: unknown;
    readonly hasMore: boolean;
    readonly isLoadingMore: boolean;
    more(): void;
    refresh(): void;
  };
}

/**
 * A list of things. Up and down (or k and j) move, Enter opens, Space (or x) selects, Shift with them selects on the way.
 */
export function Table<Row>(props: TableProps<Row>) {
  const { label, columns, rows, keyOf, linkOf, selection, nameOf, empty, listing } = props;
  const navigate = useNavigate();
  const body = useRef<HTMLTableSectionElement>(null);
  const [active, setActive] = useState<string | null>(null);
  const keys = rows.map((row) => String(keyOf(row)));
  // A row that is gone cannot have the focus; then the first may.
  const focusable = active !== null && keys.includes(active) ? active : keys[0];

  if (listing !== undefined && listing.problem !== null && rows.length === 0) {
    return <Problem error={listing.problem} retry={listing.refresh} />;
  }

  function toggle(key: string, on?: boolean): void {
    if (selection === undefined) return;
    const next = new Set(selection.selected);
    if (on ?? !next.has(key)) next.add(key);
    else next.delete(key);
    selection.change(next);
  }

  function move(from: number, by: number, select: boolean): void {
    const to = Math.max(0, Math.min(keys.length - 1, from + by));
    const key = keys[to];
    if (key === undefined) return;
    setActive(key);
    if (select) toggle(key, true);
    const row = body.current?.rows[to];
    row?.focus();
    row?.scrollIntoView?.({ block: "nearest" });
    if (to === keys.length - 1 && listing?.hasMore === true && !listing.isLoadingMore) listing.more();
  }

  function pressed(event: KeyboardEvent<HTMLTableRowElement>, row: Row, at: number): void {
    // Keys in a field or on a button of the row are theirs.
    if (event.target !== event.currentTarget || event.ctrlKey || event.metaKey || event.altKey) return;
    const key = keys[at];
    if (key === undefined) return;
    switch (event.key) {
      case "ArrowDown":
      case "j":
      case "J":
        move(at, 1, event.shiftKey);
        break;
      case "ArrowUp":
      case "k":
      case "K":
        move(at, -1, event.shiftKey);
        break;
      case "Home":
        move(0, 0, false);
        break;
      case "End":
        move(keys.length - 1, 0, false);
        break;
      case "Enter":
        if (linkOf !== undefined) void navigate(linkOf(row));
        break;
      case " ":
      case "x":
        toggle(key);
        break;
      default:
        return;
    }
    event.preventDefault();
    event.stopPropagation();
  }

  function clicked(event: MouseEvent<HTMLTableRowElement>, row: Row): void {
    if (linkOf === undefined || (event.target as Element).closest("a, button, input, label, select, summary")) return;
    if (window.getSelection()?.toString()) return; // somebody marks text to copy it
    if (event.ctrlKey || event.metaKey) window.open(linkOf(row), "_blank", "noopener");
    else void navigate(linkOf(row));
  }

  const chosen = selection === undefined ? 0 : keys.filter((key) => selection.selected.has(key)).length;
  return (
    <div className={styles.frame} data-frame="">
      <div className={styles.scroll}>
        <table className={styles.table} aria-label={label} aria-busy={listing?.isFetching === true || undefined}>
          <thead>
            <tr>
              {selection !== undefined && (
                <th scope="col" className={styles.select}>
                  <input
                    type="checkbox"
                    aria-label={`Select all ${rows.length} that are shown`}
                    checked={chosen > 0 && chosen === keys.length}
                    ref={(box) => {
                      if (box !== null) box.indeterminate = chosen > 0 && chosen < keys.length;
                    }}
                    onChange={(event) => selection.change(event.target.checked ? new Set(keys) : new Set())}
                  />
                </th>
              )}
              {columns.map((column) => (
                <th key={column.id} scope="col" className={cellClass(column)}>
                  {column.title}
                </th>
              ))}
            </tr>
          </thead>
          <tbody ref={body}>
            {rows.map((row, at) => {
              const key = keys[at] ?? "";
              const selected = selection?.selected.has(key) === true;
              return (
                <tr
                  key={key}
                  tabIndex={key === focusable ? 0 : -1}
                  aria-selected={selection === undefined ? undefined : selected}
                  className={classes(linkOf !== undefined && styles.link, selected && styles.selected)}
                  onFocus={() => setActive(key)}
                  onKeyDown={(event) => pressed(event, row, at)}
                  onClick={(event) => clicked(event, row)}
                >
                  {selection !== undefined && (
                    <td className={styles.select}>
                      <input
                        type="checkbox"
                        tabIndex={-1}
                        aria-label={`Select ${nameOf?.(row) ?? key}`}
                        checked={selected}
                        onChange={(event) => toggle(key, event.target.checked)}
                      />
                    </td>
                  )}
                  {columns.map((column, place) => (
                    <td key={column.id} className={cellClass(column)} data-title={column.title}>
                      {place === 0 && linkOf !== undefined ? (
                        <Link to={linkOf(row)} className={styles.first}>
                          {column.cell(row)}
                        </Link>
                      ) : (
                        column.cell(row)
                      )}
                    </td>
                  ))}
                </tr>
              );
            })}
          </tbody>
        </table>
        {listing?.isPending === true && <Skeleton />}
        {rows.length === 0 && listing?.isPending !== true && empty}
      </div>
      {listing !== undefined && listing.problem !== null && rows.length > 0 && (
        <Problem title="What is shown is not up to date" error={listing.problem} retry={listing.refresh} />
      )}
      {listing?.hasMore === true && (
        <div className={styles.more}>
          <Button busy={listing.isLoadingMore} onClick={listing.more}>
            {listing.isLoadingMore ? "Reading more…" : "Show more"}
          </Button>
        </div>
      )}
    </div>
  );
}

function cellClass<Row>(column: Column<Row>): string {
  return classes(
    column.align === "right" && styles.right,
    column.hide === "narrow" && styles.hideNarrow,
    column.hide === "medium" && styles.hideMedium,
    column.wide === true && styles.wide,
  );
}

export function Skeleton({ lines = 6 }: { readonly lines?: number }) {
  return (
    <div className={styles.skeleton} role="status" aria-label="Reading">
      {Array.from({ length: lines }, (_, line) => (
        <div key={line} />
      ))}
    </div>
  );
}
