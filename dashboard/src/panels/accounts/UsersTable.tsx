import type { wire } from "@/api";
import { Badge, Empty, Table, Time, useNow, type Column } from "@/ui";

import { useUsers } from "./acts";
import { userStanding } from "./rights";

export function UsersTable() {
  const users = useUsers();
  const now = useNow();
  const columns: Column<wire.UserAnswer>[] = [
    { id: "name", title: "User", cell: (user) => user.name },
    { id: "role", title: "Role", cell: (user) => user.role },
    {
      id: "state",
      title: "State",
      cell: (user) => {
        const { tone, text } = userStanding(user, now);
        return <Badge tone={tone}>{text}</Badge>;
      },
    },
    {
      id: "password",
      title: "Comes in by",
      cell: (user) => (user.has_password ? "password, tokens" : <span className="muted">tokens alone</span>),
    },
    { id: "created", title: "Since", hide: "narrow", cell: (user) => <Time at={user.created_at} /> },
    { id: "changed", title: "Changed", hide: "medium", cell: (user) => <Time at={user.changed_at} /> },
  ];
  return (
    <Table
      label="Users"
      columns={columns}
      rows={users.data?.items ?? []}
      keyOf={(user) => user.name}
      linkOf={(user) => `/accounts/${encodeURIComponent(user.name)}`}
      listing={{
        isPending: users.isPending,
        isFetching: users.isFetching,
        problem: users.error,
        hasMore: false,
        isLoadingMore: false,
        more: () => undefined,
        refresh: () => void users.refetch(),
      }}
      empty={<Empty title="There are no users">Make the first one: who is let in, and with which role.</Empty>}
    />
  );
}
