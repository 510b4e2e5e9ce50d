import { useId, useRef, type KeyboardEvent, type ReactNode } from "react";

import { classes } from "./classes";
import styles from "./Tabs.module.css";

export interface Tab<Id extends string> {
  readonly id: Id;
  readonly title: string;
  /** A number beside the title. */
  readonly count?: number;
}

interface TabsProps<Id extends string> {
  readonly label: string;
  readonly tabs: readonly Tab<Id>[];
  readonly active: Id;
  change(id: Id): void;
  /** What the active tab shows. */
  readonly children: ReactNode;
}

/** Keep the active one in the URL: `const [tab, setTab] = useQueryState("tab", "timeline")`. Arrow keys move. */
export function Tabs<Id extends string>({ label, tabs, active, change, children }: TabsProps<Id>) {
  const base = useId();
  const list = useRef<HTMLDivElement>(null);

  function pressed(event: KeyboardEvent): void {
    const at = tabs.findIndex((tab) => tab.id === active);
    const to = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: tabs.length - 1 }[event.key];
    if (to === undefined) return;
    event.preventDefault();
    const place = (to + tabs.length) % tabs.length;
    const tab = tabs[place];
    if (tab === undefined) return;
    change(tab.id);
    list.current?.querySelectorAll<HTMLButtonElement>("[role=tab]")[place]?.focus();
  }

  return (
    <div className={styles.tabs}>
      <div ref={list} role="tablist" aria-label={label} className={styles.list} onKeyDown={pressed}>
        {tabs.map((tab) => (
          <button
            key={tab.id}
            type="button"
            role="tab"
            id={`${base}-${tab.id}`}
            aria-selected={tab.id === active}
            aria-controls={`${base}-panel`}
            tabIndex={tab.id === active ? 0 : -1}
            className={classes(styles.tab, tab.id === active && styles.active)}
            onClick={() => change(tab.id)}
          >
            {tab.title}
            {tab.count !== undefined && <span className={styles.count}>{tab.count.toLocaleString()}</span>}
          </button>
        ))}
      </div>
      <div role="tabpanel" id={`${base}-panel`} aria-labelledby={`${base}-${active}`} tabIndex={0}>
        {children}
      </div>
    </div>
  );
}
