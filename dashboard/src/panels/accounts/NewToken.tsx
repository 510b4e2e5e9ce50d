import { useState, type FormEvent } from "react";

import { placedErrors, type wire } from "@/api";
import { Button, Checkbox, Copy, Dialog, Input, Problem, Select } from "@/ui";
import { PlusIcon, WarningIcon } from "@/ui/icons";

import styles from "./Accounts.module.css";
import { useCreateToken } from "./acts";
import { inOrder, LIFETIMES, SCOPE_WORDS, type Scope } from "./rights";

interface NewTokenProps {
  /** For whom; null: for oneself. */
  readonly user: string | null;
  /** The most that it may be good for. */
  readonly scopes: readonly Scope[];
}

export function NewToken({ user, scopes }: NewTokenProps) {
  const [isOpen, setIsOpen] = useState(false);
  return (
    <>
      <Button kind="primary" icon={<PlusIcon />} onClick={() => setIsOpen(true)}>
        New token
      </Button>
      {isOpen && <TokenDialog user={user} scopes={scopes} close={() => setIsOpen(false)} />}
    </>
  );
}

function TokenDialog({ user, scopes, close }: NewTokenProps & { close(): void }) {
  const offered = inOrder(scopes);
  const [label, setLabel] = useState("");
  const [wanted, setWanted] = useState<ReadonlySet<Scope>>(new Set(offered.filter((scope) => scope !== "admin")));
  const [lifetime, setLifetime] = useState("7776000");
  const create = useCreateToken(user);
  const refused = placedErrors(create.error, ["label", "scopes", "ttl"]);

  if (create.data !== undefined) return <Secret token={create.data} close={close} />;

  function submit(event: FormEvent): void {
    event.preventDefault();
    if (wanted.size === 0) return;
    create.mutate({
      label: label.trim(),
      scopes: offered.filter((scope) => wanted.has(scope)),
      ttl: lifetime === "" ? null : Number(lifetime),
    });
  }

  return (
    <Dialog
      title={user === null ? "A new token of yours" : `A new token of ${user}`}
      close={close}
      actions={
        <>
          <Button onClick={close}>Cancel</Button>
          <Button kind="primary" type="submit" form="new-token" disabled={wanted.size === 0} busy={create.isPending}>
            Make the token
          </Button>
        </>
      }
    >
      <form id="new-token" className="stack" onSubmit={submit} noValidate>
        <Input
          label="Label"
          hint="What it is for, so that somebody knows when to revoke it."
          placeholder="deploy script"
          autoComplete="off"
          autoFocus
          maxLength={200}
          error={refused.fields.label}
          value={label}
          onChange={(event) => setLabel(event.target.value)}
        />
        <fieldset className={styles.choices}>
          <legend>Good for</legend>
          {offered.map((scope) => (
            <Checkbox
              key={scope}
              label={scope}
              hint={SCOPE_WORDS[scope]}
              checked={wanted.has(scope)}
              onChange={(event) => setWanted(toggled(wanted, scope, event.target.checked))}
            />
          ))}
          {wanted.size === 0 && <p className={styles.wrong}>A token without a scope allows nothing.</p>}
          {refused.fields.scopes !== undefined && <p className={styles.wrong}>{refused.fields.scopes}</p>}
        </fieldset>
        <Select label="Lasts" options={LIFETIMES} value={lifetime} change={setLifetime} error={refused.fields.ttl} />
        {refused.rest !== null && <Problem title="No token was made" error={refused.rest} />}
      </form>
    </Dialog>
  );
}

function toggled(before: ReadonlySet<Scope>, scope: Scope, on: boolean): ReadonlySet<Scope> {
  const after = new Set(before);
  if (on) after.add(scope);
  else after.delete(scope);
  return after;
}

/** The one moment in which it can be read. */
function Secret({ token, close }: { readonly token: wire.CreatedToken; close(): void }) {
  return (
    <Dialog
      title="The token is made"
      close={close}
      actions={
        <Button kind="primary" onClick={close}>
          I have copied it
        </Button>
      }
    >
      <div className="stack">
        <p className={styles.once}>
          <WarningIcon /> It is shown this once: only its digest is kept. Copy it now.
        </p>
        <div className={styles.secret}>
          <code>{token.secret}</code>
          <Copy text={token.secret} label="the token" />
        </div>
        <p className="muted">
          Programs send it as <code>Authorization: Bearer …</code>, or have it in <code>HEADRACE_TOKEN</code>.
        </p>
      </div>
    </Dialog>
  );
}
