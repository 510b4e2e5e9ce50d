import { useState, type FormEvent } from "react";
import { Link, useParams } from "react-router";

import { placedErrors, type wire } from "@/api";
import { useMay } from "@/app/session";
import {
  Badge,
  Button,
  Empty,
  Fact,
  Facts,
  Input,
  Page,
  Problem,
  Section,
  Select,
  Skeleton,
  Time,
  useConfirm,
  useNow,
  useToasts,
} from "@/ui";

import styles from "./Accounts.module.css";
import { useChangeUser, useUser } from "./acts";
import { NewToken } from "./NewToken";
import { ROLE_WORDS, ROLES, SCOPES_OF, userStanding, type Role } from "./rights";
import { TokensTable } from "./TokensTable";

export function Component() {
  const { name = "" } = useParams();
  const isAdmin = useMay()({ role: "admin", scope: "admin" });
  const crumbs = [{ title: isAdmin ? "Users and tokens" : "Tokens", to: "/accounts" }];
  return (
    <Page title={name} crumbs={crumbs} aside={isAdmin && <UserBadge name={name} />}>
      {isAdmin ? (
        <User name={name} />
      ) : (
        <Empty title="Users are for admins" action={<Link to="/accounts">Your own tokens</Link>} />
      )}
    </Page>
  );
}

function UserBadge({ name }: { readonly name: string }) {
  const user = useUser(name);
  const now = useNow();
  if (user.data === undefined) return null;
  const { tone, text } = userStanding(user.data, now);
  return <Badge tone={tone}>{text}</Badge>;
}

function User({ name }: { readonly name: string }) {
  const user = useUser(name);
  if (user.isPending) return <Skeleton />;
  if (user.data === undefined) return <Problem error={user.error} retry={() => void user.refetch()} />;
  const found = user.data;
  return (
    <>
      <Section
        title="Who"
        actions={
          <span className="cluster">
            <Link to={`/audit?actor=${encodeURIComponent(name)}`}>What they did</Link>
            <Link to={`/tasks?q=${encodeURIComponent(`owner:${name}`)}`}>Their tasks</Link>
          </span>
        }
      >
        <Facts>
          <Fact name="Role">{found.role}</Fact>
          <Fact name="Comes in by">{found.has_password ? "password and tokens" : "tokens alone"}</Fact>
          {found.locked_until !== null && (
            <Fact name="Locked: too many wrong passwords, until">
              <Time at={found.locked_until} />
            </Fact>
          )}
          <Fact name="Since">
            <Time at={found.created_at} form="full" />
          </Fact>
          <Fact name="Changed">
            <Time at={found.changed_at} form="full" />
          </Fact>
        </Facts>
      </Section>
      <div className={styles.columns}>
        <RoleForm key={`role ${name}`} user={found} />
        <PasswordForm key={`password ${name}`} user={found} />
        <Disabling user={found} />
      </div>
      <div className={styles.head}>
        <h2>Tokens</h2>
        <NewToken user={name} scopes={SCOPES_OF[found.role]} />
      </div>
      <TokensTable whose={{ user: name }} kind="api" empty="Programs call in this user's name with one." />
      <h2>Logins</h2>
      <TokensTable whose={{ user: name }} kind="session" empty="They have to log in again, or have never done so." />
    </>
  );
}

function RoleForm({ user }: { readonly user: wire.UserAnswer }) {
  const [role, setRole] = useState<Role | null>(null);
  const change = useChangeUser(user.name);
  const wanted = role ?? user.role;

  function submit(event: FormEvent): void {
    event.preventDefault();
    change.mutate(
      { change: { role: wanted }, done: `${user.name} is ${wanted}` },
      { onSuccess: () => setRole(null) },
    );
  }

  return (
    <Section title="Role">
      <form className="stack" onSubmit={submit}>
        <Select
          label={`Role of ${user.name}`}
          hint={`${ROLE_WORDS[wanted]} It counts at once, for their tokens as well.`}
          options={ROLES}
          value={wanted}
          change={(value) => setRole(value)}
        />
        {change.error !== null && <Problem title="The role was not changed" error={change.error} />}
        <div>
          <Button type="submit" disabled={wanted === user.role} busy={change.isPending}>
            Give the role
          </Button>
        </div>
      </form>
    </Section>
  );
}

function PasswordForm({ user }: { readonly user: wire.UserAnswer }) {
  const [password, setPassword] = useState("");
  const change = useChangeUser(user.name);
  const refused = placedErrors(change.error, ["password"]);

  function submit(event: FormEvent): void {
    event.preventDefault();
    if (password === "") return;
    change.mutate(
      { change: { password }, done: `${user.name} has a new password` },
      { onSuccess: () => setPassword("") },
    );
  }

  return (
    <Section title="Password">
      <form className="stack" onSubmit={submit} noValidate>
        {/* For programs that keep passwords: whose it is. */}
        <input type="text" name="username" autoComplete="username" value={user.name} readOnly hidden />
        <Input
          label="New password"
          type="password"
          autoComplete="new-password"
          hint="At least 8 characters. It ends every login of theirs and lifts a lock."
          error={refused.fields.password}
          value={password}
          onChange={(event) => setPassword(event.target.value)}
        />
        {refused.rest !== null && <Problem title="The password was not changed" error={refused.rest} />}
        <div>
          <Button type="submit" disabled={password === ""} busy={change.isPending}>
            Set the password
          </Button>
        </div>
      </form>
    </Section>
  );
}

function Disabling({ user }: { readonly user: wire.UserAnswer }) {
  const confirm = useConfirm();
  const toasts = useToasts();
  const change = useChangeUser(user.name);

  async function act(): Promise<void> {
    const { name, disabled } = user;
    const agreed =
      disabled ||
      (await confirm({
        title: `Shut ${name} out?`,
        body: "Their logins end and their tokens are refused. Their tasks go on. You can let them in again.",
        act: `Disable ${name}`,
        danger: true,
      }));
    if (!agreed) return;
    change.mutate(
      { change: { disabled: !disabled }, done: disabled ? `${name} is let in again` : `${name} is shut out` },
      { onError: (error) => toasts.fail(`${name} was not ${disabled ? "enabled" : "disabled"}`, error) },
    );
  }

  return (
    <Section title={user.disabled ? "Let in again" : "Shut out"}>
      <div className="stack">
        <p className="muted">
          {user.disabled
            ? "Disabled: logins and tokens are refused. Enabled again they have the tokens that they had."
            : "Logins end, tokens are refused, tasks go on. The last enabled admin stays."}
        </p>
        <div>
          <Button kind={user.disabled ? "plain" : "danger"} busy={change.isPending} onClick={() => void act()}>
            {user.disabled ? `Enable ${user.name}` : `Disable ${user.name}`}
          </Button>
        </div>
      </div>
    </Section>
  );
}
