import type { ReactNode } from "react";
import { Link } from "react-router";

import { classes } from "./classes";
import styles from "./Stat.module.css";

interface StatProps {
  readonly label: string;
  readonly value: ReactNode;
  /** A few words below. */
  readonly detail?: ReactNode;
  readonly tone?: "bad" | "warn" | "good";
  /** Where more of it is to be seen. */
  readonly to?: string;
}

/** One figure, large. */
export function Stat({ label, value, detail, tone, to }: StatProps) {
  const inside = (
    <>
      <span className={styles.label}>{label}</span>
      <span className={classes(styles.value, tone !== undefined && styles[tone])}>{value}</span>
      <span className={styles.detail}>{detail ?? "\u00a0"}</span>
    </>
  );
  if (to === undefined) return <div className={styles.stat}>{inside}</div>;
  return (
    <Link to={to} className={classes(styles.stat, styles.link)}>
      {inside}
    </Link>
  );
}

/** Figures side by side, as many as fit. */
export function Stats({ children, label }: { readonly children: ReactNode; readonly label: string }) {
  return (
    <section className={styles.stats} aria-label={label}>
      {children}
    </section>
  );
}
