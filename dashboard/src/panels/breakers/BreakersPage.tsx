import { useQuery } from "@tanstack/react-query";
import { useState } from "react";

import { api, call, type wire } from "@/api";
import { useMay } from "@/app/session";
import { Button, Empty, Page, Table, Time, type Column } from "@/ui";

import { useReset } from "./acts";
import { inOrder } from "./breaking";
import { OpenDialog } from "./OpenDialog";
import { Probed, Status, Window } from "./Standing";

type Asked = { readonly service: string | null };

export function Component() {
  const may = useMay();
  const mayOperate = may({ role: "operator", scope: "control" });
  const [asked, setAsked] = useState<Asked | null>(null);
  const reset = useReset();
  const breakers = useQuery({
    queryKey: ["breakers"],
    queryFn: ({ signal }) => call(api.GET("/api/v1/breakers", { signal })),
    refetchInterval: 3000,
  });
  const columns: Column<wire.BreakerShown>[] = [
    { id: "service", title: "Service", cell: (breaker) => breaker.service },
    { id: "status", title: "State", cell: (breaker) => <Status breaker={breaker} /> },
    { id: "window", title: "When it opened", wide: true, cell: (breaker) => <Window breaker={breaker} /> },
    { id: "until", title: "Probed", cell: (breaker) => <Probed breaker={breaker} /> },
    { id: "changed", title: "Changed", cell: (breaker) => <Time at={breaker.changed_at} /> },
  ];
  // Who acted is told to operators.
  if (may({ role: "operator" })) columns.push({ id: "by", title: "By", hide: "medium", cell: (breaker) => breaker.changed_by });
  if (mayOperate) {
    columns.push({
      id: "act",
      title: "Act",
      align: "right",
      cell: ({ service, status }) =>
        status === "closed" ? (
          <Button aria-label={`Open the breaker of ${service}`} onClick={() => setAsked({ service })}>
            Open…
          </Button>
        ) : (
          <Button
            aria-label={`Reset the breaker of ${service}`}
            busy={reset.isPending && reset.variables === service}
            onClick={() => reset.mutate(service)}
          >
            Reset
          </Button>
        ),
    });
  }
  return (
    <Page
      title="Breakers"
      actions={mayOperate && <Button onClick={() => setAsked({ service: null })}>Open one by hand…</Button>}
    >
      <Table
        label="Breakers"
        columns={columns}
        rows={inOrder(breakers.data ?? [])}
        keyOf={(breaker) => breaker.service}
        linkOf={(breaker) => `/breakers/${encodeURIComponent(breaker.service)}`}
        listing={{
          isPending: breakers.isPending,
          isFetching: false,
          problem: breakers.error,
          hasMore: false,
          isLoadingMore: false,
          more: () => undefined,
          refresh: () => void breakers.refetch(),
        }}
        empty={
          <Empty title="No breaker has opened yet">
            Good. Calls to a service that may be down go behind one: <code>@app.breaker("mail")</code>. It appears here when it
            opens for the first time.
          </Empty>
        }
      />
      {asked !== null && <OpenDialog service={asked.service} close={() => setAsked(null)} />}
    </Page>
  );
}
