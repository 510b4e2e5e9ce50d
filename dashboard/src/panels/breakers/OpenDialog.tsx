import { useState, type FormEvent } from "react";

import { placedErrors } from "@/api";
import { Button, Dialog, Input, Problem, Select } from "@/ui";

import { useOpen } from "./acts";
import { TIMES } from "./breaking";

interface OpenDialogProps {
  /** null: it is asked for. One that never opened is on no list. */
  readonly service: string | null;
  close(): void;
}

export function OpenDialog({ service, close }: OpenDialogProps) {
  const [name, setName] = useState("");
  const [timeout, setTimeout] = useState("600");
  const open = useOpen();
  const refused = placedErrors(open.error, ["timeout"]);
  const wanted = service ?? name.trim();

  function submit(event: FormEvent): void {
    event.preventDefault();
    if (wanted === "") return;
    open.mutate({ service: wanted, timeout: timeout === "" ? null : Number(timeout) }, { onSuccess: close });
  }

  return (
    <Dialog
      title={service === null ? "Open a breaker by hand" : `Open the breaker of ${service}?`}
      close={close}
      actions={
        <>
          <Button onClick={close}>Cancel</Button>
          <Button kind="danger" type="submit" form="open-breaker" disabled={wanted === ""} busy={open.isPending}>
            Open it
          </Button>
        </>
      }
    >
      <form id="open-breaker" className="stack" onSubmit={submit} noValidate>
        <p>While it is open nobody calls the service: tasks that would go back uncharged, and come again.</p>
        {service === null && (
          <Input
            label="Service"
            hint={'As the code calls it: @app.breaker("mail").'}
            autoComplete="off"
            autoFocus
            value={name}
            onChange={(event) => setName(event.target.value)}
          />
        )}
        <Select label="How long" options={TIMES} value={timeout} change={setTimeout} error={refused.fields.timeout} />
        {refused.rest !== null && <Problem title="It was not opened" error={refused.rest} />}
      </form>
    </Dialog>
  );
}
