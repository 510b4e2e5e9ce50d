import { useState } from "react";

import { IconButton } from "./Button";
import { CheckIcon, CopyIcon } from "./icons";
import styles from "./Code.module.css";

/** Text as it is, to look at and to copy. */
export function Code({ text, label }: { readonly text: string; readonly label: string }) {
  return (
    <div className={styles.code}>
      <pre tabIndex={0} role="region" aria-label={label}>
        {text}
      </pre>
      <Copy text={text} label={label} />
    </div>
  );
}

export function Copy({ text, label }: { readonly text: string; readonly label: string }) {
  const [copied, setCopied] = useState(false);
  return (
    <span className={styles.copy}>
      <IconButton
        label={copied ? "Copied" : `Copy ${label}`}
        icon={copied ? <CheckIcon /> : <CopyIcon />}
        onClick={() => {
          void navigator.clipboard.writeText(text).then(() => {
            setCopied(true);
            window.setTimeout(() => setCopied(false), 1500);
          });
        }}
      />
    </span>
  );
}

/** A value that can be folded. What is deep is folded at first. */
export function Json({ value, label }: { readonly value: unknown; readonly label: string }) {
  return (
    <div className={styles.code}>
      <div className={styles.tree} tabIndex={0} role="region" aria-label={label}>
        <Node value={value} depth={0} name={null} />
      </div>
      <Copy text={JSON.stringify(value, null, 2) ?? "null"} label={label} />
    </div>
  );
}

const OPEN_TO = 2;
const MOST_CHILDREN = 200;

function Node({ value, depth, name }: { readonly value: unknown; readonly depth: number; readonly name: string | null }) {
  const [most, setMost] = useState(MOST_CHILDREN);
  const key = name === null ? null : <span className={styles.key}>{name}: </span>;
  if (typeof value !== "object" || value === null) {
    return (
      <div>
        {key}
        <Leaf value={value} />
      </div>
    );
  }
  const isList = Array.isArray(value);
  const entries = Object.entries(value);
  if (entries.length === 0) {
    return (
      <div>
        {key}
        {isList ? "[]" : "{}"}
      </div>
    );
  }
  return (
    <details open={depth < OPEN_TO}>
      <summary>
        {key}
        <span className="muted">
          {isList ? "[" : "{"} {entries.length} {isList ? "]" : "}"}
        </span>
      </summary>
      <div className={styles.children}>
        {entries.slice(0, most).map(([child, each]) => (
          <Node key={child} name={child} value={each} depth={depth + 1} />
        ))}
        {entries.length > most && (
          <button type="button" className={styles.rest} onClick={() => setMost(most * 5)}>
            {(entries.length - most).toLocaleString()} more
          </button>
        )}
      </div>
    </details>
  );
}

function Leaf({ value }: { readonly value: unknown }) {
  if (typeof value === "string") return <span className={styles.text}>{JSON.stringify(value)}</span>;
  return <span className={styles.number}>{String(value)}</span>;
}
