import { percent, sharesOf } from "./figures";
import styles from "./Lanes.module.css";

/** How the starts are shared between new work and retries while both wait. */
export function Ratio({ retry }: { readonly retry: number | null }) {
  if (retry === null) return <span className="muted">–</span>;
  const text = `${percent(1 - retry)} new work, ${percent(retry)} retries`;
  return (
    <span className={styles.ratio} title={`Of the starts while both lanes wait: ${text}`}>
      <span className={styles.bar} aria-hidden="true">
        <span className={styles.fresh} style={{ width: `${100 * (1 - retry)}%` }} />
        <span className={styles.retry} style={{ width: `${100 * retry}%` }} />
      </span>
      <span aria-hidden="true">
        {Math.round(100 * (1 - retry))} : {Math.round(100 * retry)}
      </span>
      <span className="visually-hidden">{text}</span>
    </span>
  );
}

interface LanesProps {
  readonly fresh: string;
  readonly again: string;
  readonly ratio: number | null;
}

/** The two lanes of one queue, how deep each is, and its share. */
export function Lanes({ fresh, again, ratio }: LanesProps) {
  const shares = ratio === null ? null : sharesOf(ratio);
  return (
    <div className={styles.lanes}>
      <div className={styles.lane}>
        <span className={styles.name}>
          <span className={styles.keyFresh} aria-hidden="true" />
          New work
        </span>
        <strong className={styles.depth}>{fresh}</strong>
        <span className="muted">{shares === null ? "" : `${shares.fresh} starts`}</span>
      </div>
      <div className={styles.lane}>
        <span className={styles.name}>
          <span className={styles.keyRetry} aria-hidden="true" />
          Retries
        </span>
        <strong className={styles.depth}>{again}</strong>
        <span className="muted">{shares === null ? "" : `${shares.retry} starts`}</span>
      </div>
      {ratio !== null && (
        <div className={styles.wideBar} aria-hidden="true">
          <span className={styles.fresh} style={{ width: `${100 * (1 - ratio)}%` }} />
          <span className={styles.retry} style={{ width: `${100 * ratio}%` }} />
        </div>
      )}
      <p className="muted">
        The shares hold while both lanes wait; else whoever waits goes. Many retries lower their share, so that new work goes on.
      </p>
    </div>
  );
}
