import { useMutation, useQuery } from "@tanstack/react-query";
import { useId, useState } from "react";

import { api, call, type wire } from "@/api";
import { Button, Dialog, Input, Problem, TextArea, useToasts } from "@/ui";

import { readIds, readKwargs } from "./adding";

interface AddTaskProps {
  readonly job: wire.JobShown;
  close(): void;
  added(): Promise<void>;
}

/** One more task for a job that is not over. */
export function AddTask({ job, close, added }: AddTaskProps) {
  const toasts = useToasts();
  const names = useId();
  const [name, setName] = useState("");
  const [kwargs, setKwargs] = useState("{}");
  const [after, setAfter] = useState("");
  const [isTried, setIsTried] = useState(false);
  const registry = useQuery({
    queryKey: ["registry"],
    queryFn: ({ signal }) => call(api.GET("/api/v1/registry", { signal })),
    staleTime: 60_000,
  });
  const read = { kwargs: readKwargs(kwargs), after: readIds(after) };
  const add = useMutation({
    mutationFn: () =>
      call(
        api.POST("/api/v1/jobs/{id}/tasks", {
          params: { path: { id: job.id } },
          body: {
            tasks: [{ name: name.trim(), kwargs: read.kwargs.value, kind: "on_success" }],
            after: [...read.after.value],
          },
        }),
      ),
    onSuccess: async ({ ids }) => {
      toasts.say(`Task ${ids[0] ?? ""} was added to ${job.name}`);
      await added();
      close();
    },
  });

  function submit(): void {
    setIsTried(true);
    if (name.trim() !== "" && read.kwargs.error === undefined && read.after.error === undefined) add.mutate();
  }

  return (
    <Dialog
      title={`Add a task to ${job.name}`}
      close={close}
      actions={
        <>
          <Button onClick={close}>Close</Button>
          <Button kind="primary" busy={add.isPending} onClick={submit}>
            Add
          </Button>
        </>
      }
    >
      <form
        className="stack"
        onSubmit={(event) => {
          event.preventDefault();
          submit();
        }}
      >
        <Input
          label="Task"
          hint="The name under which it is registered"
          error={isTried && name.trim() === "" ? "Say which task" : undefined}
          list={names}
          value={name}
          autoComplete="off"
          spellCheck={false}
          onChange={(event) => setName(event.target.value)}
        />
        <datalist id={names}>
          {registry.data?.items.map((item) => (
            <option key={item.name} value={item.name} />
          ))}
        </datalist>
        <TextArea
          label="Arguments"
          hint="By name, as a JSON object"
          error={isTried ? read.kwargs.error : undefined}
          value={kwargs}
          spellCheck={false}
          onChange={(event) => setKwargs(event.target.value)}
        />
        <Input
          label="Waits for"
          hint="Ids of tasks of this job, all of which have to complete first; empty: for nothing"
          error={isTried ? read.after.error : undefined}
          value={after}
          inputMode="numeric"
          onChange={(event) => setAfter(event.target.value)}
        />
        {add.error !== null && <Problem error={add.error} title="The task was not added" />}
        <button type="submit" hidden />
      </form>
    </Dialog>
  );
}
