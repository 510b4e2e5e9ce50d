import { useEffect, useId, useState, type FormEvent } from "react";

import { Button, Input } from "@/ui";

import { ACTS } from "./entries";
import styles from "./Audit.module.css";

export interface Wanted {
  readonly actor: string;
  readonly act: string;
  readonly subject: string;
}

export function wantedOf(parameters: URLSearchParams): Wanted {
  const of = (name: keyof Wanted): string => parameters.get(name) ?? "";
  return { actor: of("actor"), act: of("act"), subject: of("subject") };
}

/** Those that say something. */
export function said(wanted: Wanted): Partial<Record<keyof Wanted, string>> {
  return Object.fromEntries(Object.entries(wanted).filter(([, text]) => text !== ""));
}

/** Asked for when it is submitted: the server compares whole words, so half of one finds nothing. */
export function Filters({ actor, act, subject, apply }: Wanted & { apply(wanted: Wanted): void }) {
  const [wanted, setWanted] = useState<Wanted>({ actor, act, subject });
  const acts = useId();
  // The address may be changed by «back», or by a link.
  useEffect(() => setWanted({ actor, act, subject }), [actor, act, subject]);
  const isFiltered = actor !== "" || act !== "" || subject !== "";

  function submit(event: FormEvent): void {
    event.preventDefault();
    apply({ actor: wanted.actor.trim(), act: wanted.act.trim(), subject: wanted.subject.trim() });
  }

  return (
    <form className={styles.filters} role="search" aria-label="Audit log" onSubmit={submit}>
      <Input
        label="Who"
        placeholder="ada"
        autoComplete="off"
        value={wanted.actor}
        onChange={(event) => setWanted({ ...wanted, actor: event.target.value })}
      />
      <Input
        label="Did"
        placeholder="tasks.retry"
        autoComplete="off"
        list={acts}
        value={wanted.act}
        onChange={(event) => setWanted({ ...wanted, act: event.target.value })}
      />
      <datalist id={acts}>
        {ACTS.map((each) => (
          <option key={each} value={each} />
        ))}
      </datalist>
      <Input
        label="To what"
        placeholder="queue/mail"
        autoComplete="off"
        value={wanted.subject}
        onChange={(event) => setWanted({ ...wanted, subject: event.target.value })}
      />
      <Button type="submit">Filter</Button>
      {isFiltered && (
        <Button kind="quiet" onClick={() => apply({ actor: "", act: "", subject: "" })}>
          Clear
        </Button>
      )}
    </form>
  );
}
