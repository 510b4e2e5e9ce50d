import { useState } from "react";

import { Button, Dialog, TextArea } from "@/ui";

import { useDecide } from "./acts";

interface DecideDialogProps {
  readonly id: number;
  readonly decision: "approve" | "reject";
  close(): void;
}

/** Let it run, or refuse it; with a word about why. */
export function DecideDialog({ id, decision, close }: DecideDialogProps) {
  const [note, setNote] = useState("");
  const decide = useDecide(id);
  const word = decision === "approve" ? "Approve" : "Reject";
  return (
    <Dialog
      title={`${word} task ${id}`}
      close={close}
      actions={
        <>
          <Button onClick={close}>Decide later</Button>
          <Button
            kind={decision === "approve" ? "primary" : "danger"}
            busy={decide.isPending}
            onClick={() => decide.mutate({ decision, note: note.trim() }, { onSuccess: close })}
          >
            {word}
          </Button>
        </>
      }
    >
      <div className="stack">
        <p>{decision === "approve" ? "It runs as soon as a worker takes it." : "It has ended then, and does not run."}</p>
        <TextArea label="Note" hint="Kept with the decision. May stay empty." maxLength={2000} value={note} onChange={(event) => setNote(event.target.value)} />
      </div>
    </Dialog>
  );
}
