import { Link } from "react-router";

import type { wire } from "@/api";
import { StateBadge, wordsOf } from "@/ui";

import styles from "./Task.module.css";

interface RelativesProps {
  readonly title: string;
  readonly relatives: wire.Relatives;
  /** Where all of them are. */
  readonly job: number | null;
}

export function Relatives({ title, relatives, job }: RelativesProps) {
  if (relatives.items.length === 0) return null;
  return (
    <div className={styles.relatives}>
      <h3>{title}</h3>
      <ul>
        {relatives.items.map((each) => (
          <li key={each.id}>
            <Link to={`/tasks/${each.id}`}>
              {each.label ?? each.name} <span className="muted">#{each.id}</span>
            </Link>
            <StateBadge state={each.state} />
            <span className="muted">
              {wordsOf(each.kind)}
              {each.passes && ", with its result"}
            </span>
          </li>
        ))}
      </ul>
      {relatives.more && (
        <p className="muted">
          There are more{job !== null && <>: <Link to={`/jobs/${job}`}>see the job</Link></>}.
        </p>
      )}
    </div>
  );
}
