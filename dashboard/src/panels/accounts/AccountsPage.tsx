import { useMay, useSession } from "@/app/session";
import { Empty, Page, Tabs, type Tab } from "@/ui";
import { useQueryState } from "@/url/queryState";

import { NewToken } from "./NewToken";
import { NewUser } from "./NewUser";
import { TokensTable } from "./TokensTable";
import { UsersTable } from "./UsersTable";

type TabId = "users" | "mine" | "tokens" | "logins";

export function Component() {
  const session = useSession();
  const isAdmin = useMay()({ role: "admin", scope: "admin" });
  const tabs: Tab<TabId>[] = [
    ...(isAdmin ? [{ id: "users", title: "Users" } as const] : []),
    // In a server without users nobody has tokens of their own.
    ...(session.auth ? [{ id: "mine", title: "My tokens" } as const] : []),
    ...(isAdmin ? [{ id: "tokens", title: "All tokens" } as const, { id: "logins", title: "Logins" } as const] : []),
  ];
  const [asked, setTab] = useQueryState<TabId>("tab", tabs[0]?.id ?? "mine");
  const tab = tabs.some((each) => each.id === asked) ? asked : (tabs[0]?.id ?? "mine");
  const mayMake = session.auth && tab === "mine" && session.permissions.manage_tokens;
  if (tabs.length === 0) {
    return (
      <Page title="Users and tokens">
        <Empty title="This server has no users">Whoever reaches it may do everything, so that nobody needs a token.</Empty>
      </Page>
    );
  }
  return (
    <Page
      title={isAdmin ? "Users and tokens" : "Tokens"}
      actions={
        <>
          {tab === "users" && <NewUser />}
          {mayMake && <NewToken user={null} scopes={session.scopes} />}
        </>
      }
    >
      {!session.auth && (
        <p className="muted">
          This server runs without users: whoever reaches it may do everything. What is made here counts once it is started with them.
        </p>
      )}
      {tabs.length === 1 ? (
        <Shown tab={tab} />
      ) : (
        <Tabs label="Users and tokens" tabs={tabs} active={tab} change={setTab}>
          <Shown tab={tab} />
        </Tabs>
      )}
    </Page>
  );
}

function Shown({ tab }: { readonly tab: TabId }) {
  switch (tab) {
    case "users":
      return <UsersTable />;
    case "mine":
      return <Mine />;
    case "tokens":
      return (
        <TokensTable whose={{ everyone: true }} kind="api" empty="Everybody makes their own, and an admin those of users without a password." />
      );
    case "logins":
      return <TokensTable whose={{ everyone: true }} kind="session" empty="A login lasts for some hours." />;
  }
}

function Mine() {
  return (
    <div className="stack">
      <h2>Of programs</h2>
      <TokensTable
        whose={null}
        kind="api"
        empty="A program that calls the API in your name needs one: make it here, good for no more than it has to do."
      />
      <h2>Where you are logged in</h2>
      <TokensTable whose={null} kind="session" empty="This page goes by a token." />
    </div>
  );
}
