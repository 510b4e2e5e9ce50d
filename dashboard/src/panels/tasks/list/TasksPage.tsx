import { useQuery } from "@tanstack/react-query";
import { useMemo, useRef, useState } from "react";

import { api, call } from "@/api";
import type { Shortcut } from "@/app/panel";
import { Allowed, useMay } from "@/app/session";
import { usePageShortcuts } from "@/app/shortcuts";
import { Button, Empty, LinkButton, Page, Table, Time } from "@/ui";
import { PlusIcon } from "@/ui/icons";
import { useQueryState } from "@/url/queryState";

import { KeyHints } from "../keys";
import { getRegistry } from "../requests";
import type { Known } from "../search/completion";
import { isNarrowed, parseSearch } from "../search/query";
import { SearchBox } from "../search/SearchBox";
import type { Arrivals } from "./arrivals";
import { BulkBar } from "./BulkBar";
import { columns } from "./columns";
import { StateStrip } from "./StateStrip";
import styles from "./TasksPage.module.css";
import { useTaskList, type TaskList } from "./useTaskList";

const NOTHING: ReadonlySet<string> = new Set();

export function Component() {
  const [search, setSearch] = useQueryState("q", "");
  const { filters, wrongs } = useMemo(() => parseSearch(search), [search]);
  const narrowed = isNarrowed(filters);
  const list = useTaskList(filters, wrongs.length === 0);
  const [chosen, setChosen] = useState<ReadonlySet<string>>(NOTHING);
  const may = useMay();
  const mayAct = may({ role: "operator", scope: "control" });
  const field = useRef<HTMLInputElement>(null);
  const table = useRef<HTMLDivElement>(null);
  const known = useKnown();
  const rows = wrongs.length === 0 ? list.rows : [];
  // What is not shown any more is not chosen any more.
  const ids = useMemo(() => rows.map((row) => row.id).filter((id) => chosen.has(String(id))), [rows, chosen]);

  const intoTable = (): void => table.current?.querySelector<HTMLElement>("tbody tr[tabindex='0']")?.focus();
  const shortcuts: readonly Shortcut[] = [
    { keys: "f", title: "Search", run: () => field.current?.focus() },
    { keys: ".", title: "Show new ones", run: list.showArrivals },
  ];
  // Into the list; in it these keys are the table's own.
  usePageShortcuts([...shortcuts, { keys: "j", title: "First row", run: intoTable }, { keys: "k", title: "First row", run: intoTable }]);

  function change(next: string): void {
    setSearch(next);
    setChosen(NOTHING);
  }

  return (
    <Page
      title="Tasks"
      actions={
        <Allowed role="user" scope="submit">
          <LinkButton to="/tasks/new" kind="primary" icon={<PlusIcon />}>
            New task
          </LinkButton>
        </Allowed>
      }
    >
      <div className={styles.head}>
        <SearchBox value={search} change={change} known={known} field={field} leave={intoTable} />
        <StateStrip search={search} change={change} />
      </div>
      {mayAct && ids.length > 0 && (
        <BulkBar
          ids={ids}
          offersAll={ids.length === rows.length && list.hasMore}
          filters={filters}
          isNarrowed={narrowed}
          done={() => setChosen(NOTHING)}
        />
      )}
      <News arrivals={list.arrivals} show={list.showArrivals} />
      <div ref={table}>
        <Table
          label="Tasks"
          columns={columns}
          rows={rows}
          keyOf={(task) => task.id}
          linkOf={(task) => `/tasks/${task.id}`}
          nameOf={(task) => `${task.name} ${task.id}`}
          {...(mayAct ? { selection: { selected: chosen, change: setChosen } } : {})}
          listing={list}
          empty={wrongs.length > 0 ? <Unreadable /> : <Nothing narrowed={narrowed} list={list} clear={() => change("")} />}
        />
      </div>
      {list.searched !== null && rows.length > 0 && list.hasMore && <Searched list={list} />}
      <KeyHints
        shortcuts={[
          { keys: "j k", title: "Move" },
          { keys: "Enter", title: "Open" },
          ...(mayAct ? [{ keys: "x", title: "Choose" }] : []),
          ...shortcuts,
        ]}
      />
    </Page>
  );
}

/** Rows that arrived are said and not shown: what somebody is about to click stays below the pointer. */
function News({ arrivals, show }: { readonly arrivals: Arrivals; show(): void }) {
  const number = `${arrivals.n.toLocaleString()}${arrivals.more ? " or more" : ""}`;
  return (
    <div role="status" className={styles.news}>
      {arrivals.n > 0 && (
        <button type="button" onClick={show}>
          {number} new <span>· show</span>
        </button>
      )}
    </div>
  );
}

function Unreadable() {
  return (
    <Empty title="This search cannot be read">
      What is wrong with it is said below the field. A search is words, and <code>key:value</code>.
    </Empty>
  );
}

function Nothing({ narrowed, list, clear }: { readonly narrowed: boolean; readonly list: TaskList; clear(): void }) {
  if (list.searched !== null && list.hasMore) {
    return (
      <Empty title="Nothing yet" action={<Button busy={list.isLoadingMore} onClick={list.more}>Look further back</Button>}>
        {list.searched.tasks.toLocaleString()} tasks were looked at
        {list.searched.back_to !== null && (
          <>
            , back to <Time at={list.searched.back_to} form="full" />
          </>
        )}
        . A state, a queue or the name of a task make it quicker.
      </Empty>
    );
  }
  if (narrowed) {
    return (
      <Empty title="Nothing is found" action={<Button onClick={clear}>Show all tasks</Button>}>
        No task is as this search says. Take something out of it.
      </Empty>
    );
  }
  return (
    <Empty
      title="No tasks yet"
      action={
        <Allowed role="user" scope="submit">
          <LinkButton to="/tasks/new" kind="primary" icon={<PlusIcon />}>
            New task
          </LinkButton>
        </Allowed>
      }
    >
      Enqueue one from Python (<code>welcome.enqueue(user_id=7)</code>), on the command line (
      <code>headrace enqueue tasks:app tasks.welcome user_id=7</code>), or here.
    </Empty>
  );
}

function Searched({ list }: { readonly list: TaskList }) {
  if (list.searched === null) return null;
  return (
    <p className="muted">
      {list.searched.tasks.toLocaleString()} tasks were looked at
      {list.searched.back_to !== null && (
        <>
          , back to <Time at={list.searched.back_to} form="full" />
        </>
      )}
      . «Show more» goes on from there.
    </p>
  );
}

/** What a search could name: names and queues of the app, and workers. */
function useKnown(): Known {
  const registry = useQuery({ queryKey: ["registry"], queryFn: ({ signal }) => getRegistry(signal), staleTime: 60_000 });
  const workers = useQuery({
    queryKey: ["workers"],
    queryFn: ({ signal }) => call(api.GET("/api/v1/workers", { signal })),
    staleTime: 30_000,
  });
  return useMemo(
    () => ({
      queue: registry.data?.queues ?? [],
      name: registry.data?.items.map((task) => task.name) ?? [],
      worker: workers.data?.map((worker) => worker.id) ?? [],
    }),
    [registry.data, workers.data],
  );
}
