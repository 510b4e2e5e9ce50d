import { useState } from "react";
import { Link, useSearchParams } from "react-router";

import { api, call, useListing, type wire } from "@/api";
import { Badge, Button, Dialog, Empty, Fact, Facts, Json, Page, Table, Time, type Column } from "@/ui";

import { detailText, linkOf, outcomeOf } from "./entries";
import { Filters, said, wantedOf } from "./Filters";

export function Component() {
  const [parameters, setParameters] = useSearchParams();
  const wanted = wantedOf(parameters);
  const [shown, setShown] = useState<wire.AuditShown | null>(null);
  const filters = said(wanted);
  const isFiltered = Object.keys(filters).length > 0;
  const entries = useListing<wire.AuditShown>(["audit", filters], (cursor, signal) =>
    call(api.GET("/api/v1/audit", { signal, params: { query: { ...filters, ...(cursor === null ? {} : { cursor }) } } })),
  );
  const columns: Column<wire.AuditShown>[] = [
    { id: "at", title: "When", cell: (entry) => <Time at={entry.at} form="full" /> },
    { id: "actor", title: "Who", cell: (entry) => <Narrowed by="actor" to={entry.actor} /> },
    { id: "act", title: "Did", cell: (entry) => <Narrowed by="act" to={entry.act} /> },
    { id: "subject", title: "To what", cell: (entry) => <Subject subject={entry.subject} /> },
    { id: "outcome", title: "Outcome", cell: (entry) => <OutcomeBadge outcome={entry.outcome} /> },
    {
      id: "detail",
      title: "Detail",
      wide: true,
      hide: "medium",
      cell: (entry) => <span className="muted">{outcomeOf(entry.outcome).detail ?? detailText(entry.detail)}</span>,
    },
    {
      id: "more",
      title: "Entry",
      align: "right",
      cell: (entry) => (
        <Button kind="quiet" onClick={() => setShown(entry)} aria-label={`Show ${entry.act} by ${entry.actor}`}>
          Show
        </Button>
      ),
    },
  ];
  return (
    <Page title="Audit log" actions={<Button onClick={entries.refresh}>Look again</Button>}>
      <Filters {...wanted} apply={(next) => setParameters(new URLSearchParams(said(next)))} />
      <Table
        label="What was done, newest first"
        columns={columns}
        rows={entries.items}
        keyOf={(entry) => entry.id}
        listing={entries}
        empty={
          isFiltered ? (
            <Empty title="Nothing was done that fits">The words are compared as a whole: clear one of them to see more.</Empty>
          ) : (
            <Empty title="Nothing was done yet">Every act by a person or a token stands here, before it is done and with how it ended.</Empty>
          )
        }
      />
      {shown !== null && <Entry entry={shown} close={() => setShown(null)} />}
    </Page>
  );
}

/** Leads to everything with this word alone. */
function Narrowed({ by, to }: { readonly by: "actor" | "act"; readonly to: string }) {
  return (
    <Link to={`/audit?${new URLSearchParams({ [by]: to }).toString()}`} className={by === "act" ? "mono" : undefined} title={`Only ${to}`}>
      {to}
    </Link>
  );
}

function Subject({ subject }: { readonly subject: string }) {
  const to = linkOf(subject);
  return to === null ? <span>{subject}</span> : <Link to={to}>{subject}</Link>;
}

function OutcomeBadge({ outcome }: { readonly outcome: string | null }) {
  const { tone, text, detail } = outcomeOf(outcome);
  return (
    <Badge tone={tone} {...(detail === null ? {} : { title: detail })}>
      {text}
    </Badge>
  );
}

function Entry({ entry, close }: { readonly entry: wire.AuditShown; close(): void }) {
  const { detail } = outcomeOf(entry.outcome);
  return (
    <Dialog title={entry.act} close={close} wide>
      <div className="stack">
        <Facts>
          <Fact name="When">
            <Time at={entry.at} form="full" />
          </Fact>
          <Fact name="Who">{entry.actor}</Fact>
          <Fact name="To what">
            <Subject subject={entry.subject} />
          </Fact>
          <Fact name="Outcome">
            <OutcomeBadge outcome={entry.outcome} />
          </Fact>
          <Fact name="Number">{entry.id}</Fact>
          <Fact name="Request">
            {entry.request === null ? (
              <span className="muted">by the command line</span>
            ) : (
              <code>{entry.request}</code>
            )}
          </Fact>
        </Facts>
        {detail !== null && <p>{detail}</p>}
        {detailText(entry.detail) !== "" && <Json value={entry.detail} label="detail" />}
      </div>
    </Dialog>
  );
}
