/** What stands in the place of what is not there: nothing yet, or a problem. */

import type { ReactNode } from "react";

import { asProblem } from "@/api";

import { Button } from "./Button";
import { RetryIcon, WarningIcon } from "./icons";
import styles from "./Notice.module.css";

interface EmptyProps {
  readonly title: string;
  /** What to do so that it is not empty, or why that is good. */
  readonly children?: ReactNode;
  readonly action?: ReactNode;
}

export function Empty({ title, children, action }: EmptyProps) {
  return (
    <div className={styles.empty}>
      <svg width="72" height="28" viewBox="0 0 72 28" fill="none" aria-hidden="true" className={styles.water}>
        <path d="M2 8c11 0 11 6 22 6s11-6 22-6 11 6 24 6" />
        <path d="M2 18c11 0 11 6 22 6s11-6 22-6 11 6 24 6" />
      </svg>
      <p className={styles.title}>{title}</p>
      {children !== undefined && <div className={styles.text}>{children}</div>}
      {action}
    </div>
  );
}

interface ProblemProps {
  readonly error: unknown;
  /** What was not done: "The tasks could not be read". */
  readonly title?: string;
  readonly retry?: () => void;
}

/** What happened, in the server's words, and the id under which its log has more. */
export function Problem({ error, title, retry }: ProblemProps) {
  const problem = asProblem(error);
  return (
    <div className={styles.problem} role="alert">
      <WarningIcon />
      <div className={styles.body}>
        <p className={styles.title}>{title ?? problem.title}</p>
        {title !== undefined && problem.detail === null && <p>{problem.title}</p>}
        {problem.detail !== null && <p>{problem.detail}</p>}
        {problem.wrongs.length > 0 && (
          <ul className={styles.wrongs}>
            {problem.wrongs.map((wrong) => (
              <li key={`${wrong.where}${wrong.pointer}${wrong.detail}`}>
                <code>{`${wrong.where}${wrong.pointer}`}</code> {wrong.detail}
              </li>
            ))}
          </ul>
        )}
        {problem.retryAfter !== null && <p>The server asks to wait {problem.retryAfter} s.</p>}
        {problem.requestId !== null && (
          <p className={styles.request}>
            Request <code>{problem.requestId}</code>
          </p>
        )}
      </div>
      {retry !== undefined && (
        <Button icon={<RetryIcon />} onClick={retry}>
          Try again
        </Button>
      )}
    </div>
  );
}
