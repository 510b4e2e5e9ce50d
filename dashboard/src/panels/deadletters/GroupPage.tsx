import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { Link, useParams, useSearchParams } from "react-router";

import { api, call, useListing, type wire } from "@/api";
import { useMay, useMayControl } from "@/app/session";
import {
  Button,
  Code,
  countText,
  Empty,
  Fact,
  Facts,
  IconButton,
  Json,
  Page,
  Problem,
  Section,
  Skeleton,
  Table,
  Time,
  type Column,
} from "@/ui";
import { RetryIcon, TrashIcon } from "@/ui/icons";

import { useActing } from "./acts";
import styles from "./DeadLetters.module.css";
import { filtersOf, parametersOf, queryOf, shortClass, type Aim } from "./letters";
import { Replayed } from "./Replayed";

export function Component() {
  const { group = "" } = useParams();
  const [parameters] = useSearchParams();
  const filters = filtersOf(parameters);
  const query = queryOf(filters);
  const search = parametersOf(filters).toString();
  const mayOperate = useMay()({ role: "operator", scope: "control" });
  const groups = useQuery({
    queryKey: ["dead-letters", "groups", query],
    queryFn: ({ signal }) => call(api.GET("/api/v1/dead-letters/groups", { signal, params: { query } })),
    refetchInterval: 10_000,
  });
  const found = groups.data?.items.find((each) => each.key === group);
  const failure = found === undefined ? null : shortClass(found.error_class);
  const acting = useActing();
  const aim: Aim = { kind: "group", group, filters };
  const isAll = acting.isPending && acting.variables.aim.kind === "group";
  return (
    <Page
      title={failure ?? "Dead letters of one failure"}
      crumbs={[{ title: "Dead letters", to: search === "" ? "/dead-letters" : `/dead-letters?${search}` }]}
      aside={found !== undefined && <span className="muted">{countText(found.count)} dead letters</span>}
      actions={
        mayOperate && (
          <>
            <Button
              kind="primary"
              icon={<RetryIcon />}
              busy={isAll && acting.variables?.act === "replay"}
              onClick={() => acting.mutate({ act: "replay", aim, failure })}
            >
              Replay all of it
            </Button>
            <Button
              icon={<TrashIcon />}
              busy={isAll && acting.variables?.act === "discard"}
              onClick={() => acting.mutate({ act: "discard", aim, failure })}
            >
              Discard all of it
            </Button>
          </>
        )
      }
    >
      <Replayed />
      {groups.error !== null && <Problem error={groups.error} retry={() => void groups.refetch()} />}
      {found !== undefined && <About failure={found} />}
      <h2>Dead letters</h2>
      <Members group={group} query={query} acting={acting} mayOperate={mayOperate} />
    </Page>
  );
}

function About({ failure }: { readonly failure: wire.FailureShown }) {
  return (
    <div className={styles.columns}>
      <Section title="The failure">
        <div className="stack">
          <Facts>
            <Fact name="Class">
              <span className="mono">{failure.error_class ?? "none"}</span>
            </Fact>
            <Fact name="Tasks">{failure.names.join(", ")}</Fact>
            <Fact name="Queues">{failure.queues.join(", ")}</Fact>
            <Fact name="Newest">
              <Time at={failure.newest_at} />
            </Fact>
            <Fact name="Oldest that was looked at">
              <Time at={failure.oldest_at} />
            </Fact>
          </Facts>
          {failure.message !== "" && (
            <div>
              <p className="muted">What their messages have in common</p>
              <p className={styles.pattern}>{failure.message}</p>
            </div>
          )}
        </div>
      </Section>
      <Section title="An example" actions={<Link to={`/tasks/${failure.example}`}>Task {failure.example}</Link>}>
        <Example id={failure.example} />
      </Section>
    </div>
  );
}

/** The newest of them, as it failed. */
function Example({ id }: { readonly id: number }) {
  const task = useQuery({
    queryKey: ["task", id],
    queryFn: ({ signal }) => call(api.GET("/api/v1/tasks/{id}", { signal, params: { path: { id } } })),
  });
  if (task.isPending) return <Skeleton lines={3} />;
  if (task.data === undefined) return <Problem error={task.error} retry={() => void task.refetch()} />;
  const { error, arguments: given, attempts } = task.data;
  const traceback = attempts.findLast((attempt) => attempt.traceback !== null)?.traceback ?? null;
  return (
    <div className="stack">
      {error?.message != null && <p className={styles.pattern}>{error.message}</p>}
      <Json value={given} label={`arguments of task ${id}`} />
      {traceback !== null && (
        <details className={styles.traceback}>
          <summary>Its traceback</summary>
          <Code text={traceback} label={`traceback of task ${id}`} />
        </details>
      )}
    </div>
  );
}

interface MembersProps {
  readonly group: string;
  readonly query: ReturnType<typeof queryOf>;
  readonly acting: ReturnType<typeof useActing>;
  readonly mayOperate: boolean;
}

function Members({ group, query, acting, mayOperate }: MembersProps) {
  const [selected, setSelected] = useState<ReadonlySet<string>>(new Set());
  const mayControl = useMayControl();
  const letters = useListing<wire.TaskSummary>(
    ["dead-letters", "list", group, query],
    (cursor, signal) =>
      call(
        api.GET("/api/v1/dead-letters", {
          signal,
          params: { query: { ...query, group, limit: 50, ...(cursor === null ? {} : { cursor }) } },
        }),
      ),
    { refreshEach: 10_000 },
  );
  // What is gone meanwhile is not chosen any more.
  const chosen = letters.items.filter((task) => selected.has(String(task.id))).map((task) => task.id);

  function act(kind: "replay" | "discard", ids: readonly number[]): void {
    acting.mutate(
      { act: kind, aim: { kind: "chosen", ids }, failure: null },
      { onSuccess: (done) => (done === null ? undefined : setSelected(new Set())) },
    );
  }

  const columns: Column<wire.TaskSummary>[] = [
    { id: "id", title: "Task", cell: (task) => `${task.id} ${task.label ?? task.name}` },
    { id: "message", title: "Message", wide: true, cell: (task) => <span title={task.error?.message ?? undefined}>{task.error?.message}</span> },
    { id: "queue", title: "Queue", hide: "medium", cell: (task) => task.queue },
    { id: "owner", title: "Owner", hide: "medium", cell: (task) => task.owner ?? <span className="muted">–</span> },
    { id: "attempts", title: "Attempts", align: "right", hide: "narrow", cell: (task) => `${task.attempt}/${task.max_attempts}` },
    { id: "failed", title: "Failed", cell: (task) => <Time at={task.finished_at} /> },
    {
      id: "act",
      title: "Act",
      align: "right",
      cell: (task) =>
        mayControl(task.owner) && (
          <span className={styles.acts}>
            <IconButton label={`Replay task ${task.id}`} icon={<RetryIcon />} disabled={acting.isPending} onClick={() => act("replay", [task.id])} />
            <IconButton label={`Discard task ${task.id}`} icon={<TrashIcon />} disabled={acting.isPending} onClick={() => act("discard", [task.id])} />
          </span>
        ),
    },
  ];
  return (
    <>
      {chosen.length > 0 && (
        <div className={styles.chosen} role="toolbar" aria-label="Acts on those that are chosen">
          <span>{chosen.length.toLocaleString("en-US")} chosen</span>
          <Button icon={<RetryIcon />} disabled={acting.isPending} onClick={() => act("replay", chosen)}>
            Replay
          </Button>
          <Button icon={<TrashIcon />} disabled={acting.isPending} onClick={() => act("discard", chosen)}>
            Discard
          </Button>
          <Button kind="quiet" onClick={() => setSelected(new Set())}>
            Choose none
          </Button>
        </div>
      )}
      <Table
        label="Dead letters of this failure, the last to fail first"
        columns={columns}
        rows={letters.items}
        keyOf={(task) => task.id}
        linkOf={(task) => `/tasks/${task.id}`}
        nameOf={(task) => `task ${task.id}`}
        {...(mayOperate ? { selection: { selected, change: setSelected } } : {})}
        listing={{ ...letters, isFetching: false }}
        empty={
          <Empty title="None is left" action={<Link to="/dead-letters">Other dead letters</Link>}>
            They were replayed or discarded.
          </Empty>
        }
      />
    </>
  );
}
