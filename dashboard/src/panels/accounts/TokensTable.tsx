import { useState } from "react";
import { Link } from "react-router";

import type { wire } from "@/api";
import { useSession } from "@/app/session";
import { Badge, Button, Checkbox, Empty, Table, Time, useConfirm, useNow, type Column } from "@/ui";

import { useRevoke, useTokens, type Kind, type Whose } from "./acts";
import { browserOf, inOrder, standingOf } from "./rights";

interface TokensTableProps {
  readonly whose: Whose;
  readonly kind: Kind;
  /** What is said when there are none. */
  readonly empty: string;
}

/** Tokens of programs, or logins of people; those that are no good any more are shown when asked for. */
export function TokensTable({ whose, kind, empty }: TokensTableProps) {
  const tokens = useTokens(whose, kind);
  const [withOld, setWithOld] = useState(false);
  const now = useNow();
  const session = useSession();
  const confirm = useConfirm();
  const revoke = useRevoke();
  const all = tokens.data?.items ?? [];
  const good = all.filter((token) => standingOf(token, now).isGood);
  const ofEveryone = whose !== null && "everyone" in whose;

  async function ask(token: wire.TokenAnswer): Promise<void> {
    const isLogin = kind === "session";
    const agreed = await confirm({
      title: isLogin ? `End this login of ${token.user}?` : `Revoke ${token.label || token.hint}?`,
      body: isLogin
        ? "Whoever uses it has to log in again. If it is the one of this page, that is you."
        : "Programs that use it are refused from now on, on other servers within five seconds. It cannot be taken back.",
      act: isLogin ? "End the login" : "Revoke the token",
      danger: true,
    });
    if (agreed) revoke.mutate(token);
  }

  const columns: Column<wire.TokenAnswer>[] = [
    {
      id: "label",
      title: kind === "session" ? "Browser" : "Token",
      wide: true,
      cell: (token) =>
        kind === "session" ? (
          <span title={token.label}>{browserOf(token.label) || "unknown"}</span>
        ) : (
          <span>
            {token.label || <span className="muted">no label</span>} <code className="muted">{token.hint}…</code>
          </span>
        ),
    },
  ];
  if (ofEveryone) {
    columns.push({
      id: "user",
      title: "Of",
      cell: (token) => <Link to={`/accounts/${encodeURIComponent(token.user)}`}>{token.user}</Link>,
    });
  }
  columns.push(
    {
      id: "state",
      title: "State",
      cell: (token) => {
        const { tone, text } = standingOf(token, now);
        return <Badge tone={tone}>{text}</Badge>;
      },
    },
    { id: "scopes", title: "Good for", hide: "medium", cell: (token) => inOrder(token.scopes).join(", ") },
    { id: "created", title: "Made", hide: "medium", cell: (token) => <Time at={token.created_at} /> },
    {
      id: "used",
      title: "Last used",
      cell: (token) => (token.last_used_at === null ? <span className="muted">never</span> : <Time at={token.last_used_at} />),
    },
    {
      id: "ends",
      title: "Ends",
      cell: (token) =>
        token.revoked_at !== null ? (
          <Time at={token.revoked_at} />
        ) : token.expires_at === null ? (
          <span className="muted">when revoked</span>
        ) : (
          <Time at={token.expires_at} />
        ),
    },
  );
  if (session.permissions.manage_tokens) {
    columns.push({
      id: "act",
      title: "Act",
      align: "right",
      cell: (token) =>
        standingOf(token, now).isGood && (
          <Button
            busy={revoke.isPending && revoke.variables.id === token.id}
            aria-label={kind === "session" ? `End the login ${token.id}` : `Revoke ${token.label || token.hint}`}
            onClick={() => void ask(token)}
          >
            {kind === "session" ? "End" : "Revoke"}
          </Button>
        ),
    });
  }
  return (
    <div className="stack">
      <Table
        label={kind === "session" ? "Logins" : "Tokens"}
        columns={columns}
        rows={withOld ? all : good}
        keyOf={(token) => token.id}
        listing={{
          isPending: tokens.isPending,
          isFetching: tokens.isFetching,
          problem: tokens.error,
          hasMore: false,
          isLoadingMore: false,
          more: () => undefined,
          refresh: () => void tokens.refetch(),
        }}
        empty={<Empty title={kind === "session" ? "Nobody is logged in" : "No token is good now"}>{empty}</Empty>}
      />
      {all.length > good.length && (
        <Checkbox
          label={`Show ${(all.length - good.length).toLocaleString()} that ended`}
          checked={withOld}
          onChange={(event) => setWithOld(event.target.checked)}
        />
      )}
    </div>
  );
}
