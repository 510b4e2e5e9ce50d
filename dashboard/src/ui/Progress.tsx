import styles from "./Progress.module.css";

export interface Part {
  readonly tone: "good" | "bad" | "active" | "ended" | "accent";
  readonly value: number;
  readonly label: string;
}

interface ProgressProps {
  readonly label: string;
  /** null: nobody knows how much there is. */
  readonly total: number | null;
  readonly value?: number;
  /** In place of a value: parts of different kinds, side by side. */
  readonly parts?: readonly Part[];
  /** Said beside the bar: "30 of 120". */
  readonly text?: string;
}

export function Progress({ label, total, value = 0, parts, text }: ProgressProps) {
  const shown = parts ?? [{ tone: "accent" as const, value, label }];
  const done = shown.reduce((sum, part) => sum + part.value, 0);
  const known = total !== null && total > 0;
  return (
    <div className={styles.progress}>
      <div
        className={styles.bar}
        role="progressbar"
        aria-label={label}
        aria-valuemin={0}
        {...(known ? { "aria-valuemax": total, "aria-valuenow": Math.min(done, total) } : {})}
        {...(text === undefined ? {} : { "aria-valuetext": text })}
        title={parts?.map((part) => `${part.label}: ${part.value}`).join("\n")}
      >
        {known ? (
          shown.map((part) => (
            <div
              key={part.label}
              className={styles[part.tone]}
              style={{ width: `${Math.min(100, (100 * part.value) / total)}%` }}
            />
          ))
        ) : (
          <div className={styles.unknown} />
        )}
      </div>
      {text !== undefined && <span className={styles.text}>{text}</span>}
    </div>
  );
}

export interface TaskProgress {
  readonly value: number | null;
  readonly total: number | null;
  readonly message: string | null;
}

/** What a task said of its progress: {value, total, message}, each of which it may leave out. */
export function readProgress(progress: unknown): TaskProgress | null {
  if (typeof progress !== "object" || progress === null) return null;
  const { value, total, message } = progress as Readonly<Record<string, unknown>>;
  const found: TaskProgress = {
    value: typeof value === "number" ? value : null,
    total: typeof total === "number" ? total : null,
    message: typeof message === "string" ? message : null,
  };
  return found.value === null && found.message === null ? null : found;
}
