import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { useParams } from "react-router";

import { api, call, type wire } from "@/api";
import { useMay } from "@/app/session";
import { Button, Empty, Fact, Facts, Page, Problem, Section, Skeleton, StateBadge, Table, Time, type Column } from "@/ui";

import { useReset } from "./acts";
import { changeText, meaningOf, statusAfter } from "./breaking";
import { OpenDialog } from "./OpenDialog";
import { Probed, Status, Window } from "./Standing";

export function Component() {
  const { service = "" } = useParams();
  const mayOperate = useMay()({ role: "operator", scope: "control" });
  const [isAsked, setIsAsked] = useState(false);
  const reset = useReset();
  const breakers = useQuery({
    queryKey: ["breakers"],
    queryFn: ({ signal }) => call(api.GET("/api/v1/breakers", { signal })),
    refetchInterval: 3000,
  });
  const breaker = breakers.data?.find((each) => each.service === service);
  return (
    <Page
      title={service}
      crumbs={[{ title: "Breakers", to: "/breakers" }]}
      aside={breaker !== undefined && <Status breaker={breaker} />}
      actions={
        mayOperate && (
          <>
            {breaker !== undefined && breaker.status !== "closed" && (
              <Button kind="primary" busy={reset.isPending} onClick={() => reset.mutate(service)}>
                Reset
              </Button>
            )}
            <Button onClick={() => setIsAsked(true)}>{breaker?.status === "open" ? "Keep it open…" : "Open by hand…"}</Button>
          </>
        )
      }
    >
      {breakers.isPending && <Skeleton />}
      {breakers.error !== null && <Problem error={breakers.error} retry={() => void breakers.refetch()} />}
      {breakers.data !== undefined && breaker === undefined && (
        <div className="card">
          <Empty title={`No breaker of ${service} has opened yet`}>Calls to it go through, or nobody calls it.</Empty>
        </div>
      )}
      {breaker !== undefined && (
        <>
          <Section title="Now">
            <div className="stack">
              <p>{meaningOf(breaker)}</p>
              <Facts>
                <Fact name="Counted when it opened">
                  <Window breaker={breaker} />
                </Fact>
                <Fact name="Probed">
                  <Probed breaker={breaker} />
                </Fact>
                <Fact name="Changed">
                  <Time at={breaker.changed_at} form="full" />
                </Fact>
                {breaker.changed_by !== null && <Fact name="By">{breaker.changed_by}</Fact>}
                <Fact name="Changes so far">{breaker.revision.toLocaleString("en-US")}</Fact>
              </Facts>
            </div>
          </Section>
          <h2>History</h2>
          <History breaker={breaker} />
        </>
      )}
      {isAsked && <OpenDialog service={service} close={() => setIsAsked(false)} />}
    </Page>
  );
}

function History({ breaker }: { readonly breaker: wire.BreakerShown }) {
  const { service, revision, status } = breaker;
  const mayKnow = useMay()({ role: "operator" });
  const history = useQuery({
    // Each change has another revision, and the clock makes one half open: then there is something new to read.
    queryKey: ["breakers", service, "history", revision, status],
    queryFn: ({ signal }) => call(api.GET("/api/v1/breakers/{service}/history", { signal, params: { path: { service } } })),
  });
  const columns: Column<wire.BreakerChange>[] = [
    { id: "at", title: "When", cell: (change) => <Time at={change.at} form="full" /> },
    {
      id: "status",
      title: "State",
      cell: (change) => {
        const status = statusAfter(change);
        return status === null ? <span className="muted">as before</span> : <StateBadge state={status} />;
      },
    },
    { id: "what", title: "What", wide: true, cell: (change) => changeText(change) },
    ...(mayKnow ? [{ id: "by", title: "By", cell: (change: wire.BreakerChange) => change.by ?? <span className="muted">the clock</span> }] : []),
    {
      id: "outcome",
      title: "Outcome",
      hide: "narrow",
      cell: (change) => change.outcome ?? "not known",
    },
  ];
  return (
    <>
      <Table
        label={`What happened to the breaker of ${service}, newest first`}
        columns={columns}
        rows={history.data?.items ?? []}
        keyOf={(change) => `${change.at} ${change.source} ${change.act}`}
        listing={{
          isPending: history.isPending,
          isFetching: false,
          problem: history.error,
          hasMore: false,
          isLoadingMore: false,
          more: () => undefined,
          refresh: () => void history.refetch(),
        }}
        empty={<Empty title="Nothing is kept of its past" />}
      />
      {history.data !== undefined && !history.data.complete && (
        <p className="muted">
          The last 100 changes are kept, and what was done by hand over the API for a year: there was more before.
        </p>
      )}
    </>
  );
}
