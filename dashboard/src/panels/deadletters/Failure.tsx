import styles from "./DeadLetters.module.css";
import { shortClass } from "./letters";

interface FailureProps {
  readonly errorClass: string | null;
  readonly message: string | null;
}

/** An error as people read it: what it is, and what it says. */
export function Failure({ errorClass, message }: FailureProps) {
  return (
    <span className={styles.failure}>
      <strong title={errorClass ?? undefined}>{shortClass(errorClass)}</strong>
      {message !== null && message !== "" && <span className={styles.message}>{message}</span>}
    </span>
  );
}
