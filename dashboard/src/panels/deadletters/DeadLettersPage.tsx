import { useQuery } from "@tanstack/react-query";
import { Link, useSearchParams } from "react-router";

import { api, call, type wire } from "@/api";
import { useMay } from "@/app/session";
import { Button, countText, Empty, IconButton, Page, Table, Time, type Column } from "@/ui";
import { RetryIcon, TrashIcon } from "@/ui/icons";

import { useActing, type Act } from "./acts";
import styles from "./DeadLetters.module.css";
import { Failure } from "./Failure";
import { FilterBar } from "./FilterBar";
import { filtersOf, parametersOf, queryOf, shortClass } from "./letters";
import { Replayed } from "./Replayed";

export function Component() {
  const [parameters, setParameters] = useSearchParams();
  const filters = filtersOf(parameters);
  const query = queryOf(filters);
  const isFiltered = Object.keys(query).length > 0;
  const mayOperate = useMay()({ role: "operator", scope: "control" });
  const groups = useQuery({
    queryKey: ["dead-letters", "groups", query],
    queryFn: ({ signal }) => call(api.GET("/api/v1/dead-letters/groups", { signal, params: { query } })),
    refetchInterval: 10_000,
  });
  const acting = useActing();
  const items = groups.data?.items ?? [];

  function isBusy(act: Act, group: string | null): boolean {
    if (!acting.isPending || acting.variables.act !== act) return false;
    const { aim } = acting.variables;
    return group === null ? aim.kind === "filter" : aim.kind === "group" && aim.group === group;
  }

  const columns: Column<wire.FailureShown>[] = [
    {
      id: "error",
      title: "Error",
      wide: true,
      cell: (group) => <Failure errorClass={group.error_class} message={group.message} />,
    },
    { id: "count", title: "Dead letters", align: "right", cell: (group) => countText(group.count) },
    { id: "names", title: "Tasks", hide: "medium", cell: (group) => <Few words={group.names} /> },
    { id: "queues", title: "Queues", hide: "medium", cell: (group) => <Few words={group.queues} /> },
    { id: "newest", title: "Newest", cell: (group) => <Time at={group.newest_at} /> },
    { id: "example", title: "Example", cell: (group) => <Link to={`/tasks/${group.example}`}>{group.example}</Link> },
  ];
  if (mayOperate) {
    columns.push({
      id: "act",
      title: "Act",
      align: "right",
      cell: (group) => {
        const failure = shortClass(group.error_class);
        const aim = { kind: "group", group: group.key, filters } as const;
        return (
          <span className={styles.acts}>
            <IconButton
              label={`Replay ${failure}: ${group.message}`}
              icon={<RetryIcon />}
              busy={isBusy("replay", group.key)}
              onClick={() => acting.mutate({ act: "replay", aim, failure })}
            />
            <IconButton
              label={`Discard ${failure}: ${group.message}`}
              icon={<TrashIcon />}
              busy={isBusy("discard", group.key)}
              onClick={() => acting.mutate({ act: "discard", aim, failure })}
            />
          </span>
        );
      },
    });
  }

  const aim = { kind: "filter", filters } as const;
  const search = parametersOf(filters).toString();
  return (
    <Page
      title="Dead letters"
      actions={
        mayOperate &&
        items.length > 0 && (
          <>
            <Button
              icon={<RetryIcon />}
              busy={isBusy("replay", null)}
              onClick={() => acting.mutate({ act: "replay", aim, failure: null })}
            >
              {isFiltered ? "Replay all of these" : "Replay all"}
            </Button>
            <Button
              icon={<TrashIcon />}
              busy={isBusy("discard", null)}
              onClick={() => acting.mutate({ act: "discard", aim, failure: null })}
            >
              {isFiltered ? "Discard all of these" : "Discard all"}
            </Button>
          </>
        )
      }
    >
      <FilterBar filters={filters} change={(next) => setParameters(parametersOf(next), { replace: true })} />
      <Replayed />
      <Table
        label="Dead letters by error"
        columns={columns}
        rows={items}
        keyOf={(group) => group.key}
        linkOf={(group) => `/dead-letters/${group.key}${search === "" ? "" : `?${search}`}`}
        listing={{
          isPending: groups.isPending,
          isFetching: false,
          problem: groups.error,
          hasMore: false,
          isLoadingMore: false,
          more: () => undefined,
          refresh: () => void groups.refetch(),
        }}
        empty={
          isFiltered ? (
            <Empty title="No dead letter fits">Clear a filter to see more.</Empty>
          ) : (
            <Empty title="There are no dead letters">
              Good. A task whose final failure is to be kept here says so: <code>retry=Retry(dead_letter=True)</code>.
            </Empty>
          )
        }
      />
      {groups.data !== undefined && !groups.data.searched.complete && (
        <p className="muted">
          The newest {groups.data.searched.tasks.toLocaleString("en-US")} were looked at
          {groups.data.searched.back_to !== null && (
            <>
              , back to <Time at={groups.data.searched.back_to} form="full" />
            </>
          )}
          . Acts on a group or a filter take the older ones as well.
        </p>
      )}
    </Page>
  );
}

/** The first two, and how many there are besides. */
function Few({ words }: { readonly words: readonly string[] }) {
  const more = words.length - 2;
  return (
    <span title={words.join("\n")}>
      {words.slice(0, 2).join(", ")}
      {more > 0 && <span className="muted"> and {more} more</span>}
    </span>
  );
}
