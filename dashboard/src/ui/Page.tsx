import { useEffect, type ReactNode } from "react";
import { Link } from "react-router";

import { ChevronIcon } from "./icons";
import styles from "./Page.module.css";

interface Crumb {
  readonly title: string;
  readonly to: string;
}

interface PageProps {
  readonly title: string;
  /** Beside the title: a state, a count. */
  readonly aside?: ReactNode;
  /** The way down to here. */
  readonly crumbs?: readonly Crumb[];
  /** Buttons, at the right. */
  readonly actions?: ReactNode;
  readonly children: ReactNode;
}

/** Every page has one: it names itself in the window's title and in its only h1. */
export function Page({ title, aside, crumbs = [], actions, children }: PageProps) {
  useEffect(() => {
    document.title = `${title} · Headrace`;
  }, [title]);
  return (
    <div className={styles.page}>
      <header className={styles.header}>
        <div className={styles.heading}>
          {crumbs.length > 0 && (
            <nav aria-label="Breadcrumbs" className={styles.crumbs}>
              {crumbs.map((crumb) => (
                <span key={crumb.to} className="cluster">
                  <Link to={crumb.to}>{crumb.title}</Link>
                  <ChevronIcon />
                </span>
              ))}
            </nav>
          )}
          <div className={styles.title}>
            <h1>{title}</h1>
            {aside}
          </div>
        </div>
        {actions !== undefined && <div className={styles.actions}>{actions}</div>}
      </header>
      {children}
    </div>
  );
}

interface SectionProps {
  readonly title: string;
  readonly actions?: ReactNode;
  readonly children: ReactNode;
}

/** A part of a page with a heading, on a card. */
export function Section({ title, actions, children }: SectionProps) {
  return (
    <section className={styles.section} aria-label={title}>
      <div className={styles.sectionHead}>
        <h2>{title}</h2>
        {actions}
      </div>
      {children}
    </section>
  );
}

/** Names and values below each other: `<Facts><Fact name="Queue">mail</Fact></Facts>`. */
export function Facts({ children }: { readonly children: ReactNode }) {
  return <dl className={styles.facts}>{children}</dl>;
}

export function Fact({ name, children }: { readonly name: string; readonly children: ReactNode }) {
  return (
    <div>
      <dt>{name}</dt>
      <dd>{children}</dd>
    </div>
  );
}
