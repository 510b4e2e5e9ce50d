import { useQuery } from "@tanstack/react-query";
import { useEffect, useState } from "react";

import { api, call } from "@/api";
import { useMay } from "@/app/session";
import { Button, Input, Select, type Option } from "@/ui";

import styles from "./DeadLetters.module.css";
import { NO_FILTERS, type Filters } from "./letters";

/** Narrowed by what the code knows; a name that it does not know any more is still there when the address has it. */
export function FilterBar({ filters, change }: { readonly filters: Filters; change(filters: Filters): void }) {
  const seesAll = useMay()({ overseer: true });
  const registry = useQuery({
    queryKey: ["registry"],
    queryFn: ({ signal }) => call(api.GET("/api/v1/registry", { signal })),
    staleTime: 60_000,
  });
  const names = registry.data?.items.map((task) => task.name) ?? [];
  const isFiltered = filters.queue !== "" || filters.name !== "" || filters.owner !== "";
  return (
    <div className={styles.filters} role="search" aria-label="Dead letters">
      <Select
        label="Queue"
        options={optionsOf("every queue", registry.data?.queues ?? [], filters.queue)}
        value={filters.queue}
        change={(queue) => change({ ...filters, queue })}
      />
      <Select
        label="Task"
        options={optionsOf("every task", names, filters.name)}
        value={filters.name}
        change={(name) => change({ ...filters, name })}
      />
      {seesAll && <Owner owner={filters.owner} change={(owner) => change({ ...filters, owner })} />}
      {isFiltered && (
        <Button kind="quiet" onClick={() => change(NO_FILTERS)}>
          Clear
        </Button>
      )}
    </div>
  );
}

function optionsOf(all: string, known: readonly string[], chosen: string): readonly Option[] {
  const values = chosen === "" || known.includes(chosen) ? known : [chosen, ...known];
  return [{ value: "", label: all }, ...values.map((value) => ({ value, label: value }))];
}

/** Asked for when it is entered: half of a name finds nobody. */
function Owner({ owner, change }: { readonly owner: string; change(owner: string): void }) {
  const [text, setText] = useState(owner);
  useEffect(() => setText(owner), [owner]);
  const commit = (): void => {
    if (text.trim() !== owner) change(text.trim());
  };
  return (
    <Input
      label="Owner"
      placeholder="everybody"
      autoComplete="off"
      value={text}
      onChange={(event) => setText(event.target.value)}
      onBlur={commit}
      onKeyDown={(event) => {
        if (event.key === "Enter") commit();
      }}
    />
  );
}
