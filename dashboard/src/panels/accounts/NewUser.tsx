import { useState, type FormEvent } from "react";
import { useNavigate } from "react-router";

import { placedErrors } from "@/api";
import { Button, Dialog, Input, Problem, Select } from "@/ui";
import { PlusIcon } from "@/ui/icons";

import { useAddUser } from "./acts";
import { ROLE_WORDS, ROLES, type Role } from "./rights";

export function NewUser() {
  const [isOpen, setIsOpen] = useState(false);
  return (
    <>
      <Button kind="primary" icon={<PlusIcon />} onClick={() => setIsOpen(true)}>
        New user
      </Button>
      {isOpen && <UserDialog close={() => setIsOpen(false)} />}
    </>
  );
}

function UserDialog({ close }: { close(): void }) {
  const [name, setName] = useState("");
  const [role, setRole] = useState<Role>("user");
  const [password, setPassword] = useState("");
  const navigate = useNavigate();
  const add = useAddUser();
  const refused = placedErrors(add.error, ["name", "role", "password"]);

  function submit(event: FormEvent): void {
    event.preventDefault();
    const body = { name: name.trim(), role, ...(password === "" ? {} : { password }) };
    add.mutate(body, { onSuccess: (user) => void navigate(`/accounts/${encodeURIComponent(user.name)}`) });
  }

  return (
    <Dialog
      title="A new user"
      close={close}
      actions={
        <>
          <Button onClick={close}>Cancel</Button>
          <Button kind="primary" type="submit" form="new-user" disabled={name.trim() === ""} busy={add.isPending}>
            Let them in
          </Button>
        </>
      }
    >
      <form id="new-user" className="stack" onSubmit={submit} noValidate>
        <Input
          label="Name"
          hint="Letters, digits and . _ @ + -. It is given once, and cannot be changed."
          autoComplete="off"
          autoCapitalize="none"
          spellCheck={false}
          autoFocus
          error={refused.fields.name}
          value={name}
          onChange={(event) => setName(event.target.value)}
        />
        <Select label="Role" hint={ROLE_WORDS[role]} options={ROLES} value={role} change={(value) => setRole(value)} error={refused.fields.role} />
        <Input
          label="Password"
          type="password"
          hint="At least 8 characters. Empty: they cannot log in, and an admin makes their first token."
          autoComplete="new-password"
          error={refused.fields.password}
          value={password}
          onChange={(event) => setPassword(event.target.value)}
        />
        {refused.rest !== null && <Problem title="Nobody was let in" error={refused.rest} />}
      </form>
    </Dialog>
  );
}
