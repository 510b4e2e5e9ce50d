/** The keys of the page that is open, where a keyboard is: `?` shows all of them. */

import type { Shortcut } from "@/app/panel";

import styles from "./keys.module.css";

interface KeyHintsProps {
  readonly shortcuts: readonly Pick<Shortcut, "keys" | "title">[];
}

export function KeyHints({ shortcuts }: KeyHintsProps) {
  return (
    <dl className={styles.hints} aria-label="Keys of this page">
      {[...shortcuts, { keys: "?", title: "All keys" }].map(({ keys, title }) => (
        <div key={keys}>
          <dt>
            {keys.split(" ").map((key) => (
              <kbd key={key}>{key}</kbd>
            ))}
          </dt>
          <dd>{title}</dd>
        </div>
      ))}
    </dl>
  );
}
