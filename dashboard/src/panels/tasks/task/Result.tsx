import { useMutation, useQuery } from "@tanstack/react-query";

import { holdsRedacted, type wire } from "@/api";
import { useMayControl } from "@/app/session";
import { Button, Json, Problem, Section, Skeleton, Time, useToasts } from "@/ui";

import { getResult } from "../requests";

/** What it returned. Secrets are shown to who controls it, when they ask for it: that is noted. */
export function Result({ task }: { readonly task: wire.TaskDetail }) {
  const result = useQuery({
    // Not below the task: it is read again when that is, and by then there may be no result.
    queryKey: ["result", task.id, task.run_no],
    queryFn: ({ signal }) => getResult(task.id, false, signal),
    staleTime: Number.POSITIVE_INFINITY,
  });
  const toasts = useToasts();
  const mayControl = useMayControl();
  const reveal = useMutation({
    mutationFn: () => getResult(task.id, true),
    onError: (error) => toasts.fail("The secrets are not shown", error),
  });
  const shown = reveal.data ?? result.data;
  return (
    <Section
      title="Result"
      actions={
        <span className="cluster">
          {task.result_expires_at !== null && (
            <span className="muted">
              kept until <Time at={task.result_expires_at} form="full" />
            </span>
          )}
          {mayControl(task.owner) && reveal.data === undefined && holdsRedacted(result.data?.value) && (
            <Button kind="quiet" busy={reveal.isPending} onClick={() => reveal.mutate()}>
              Show secrets
            </Button>
          )}
        </span>
      }
    >
      {result.isPending && <Skeleton lines={2} />}
      {result.error !== null && <Problem title="The result cannot be shown" error={result.error} />}
      {shown !== undefined && <Json value={shown.value} label="the result" />}
    </Section>
  );
}
