/** What can be done with a job. Who may not, does not see it. */

import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";

import { api, call, type wire } from "@/api";
import { useMay, useMayControl } from "@/app/session";
import { Button, useConfirm, useToasts } from "@/ui";
import { PlusIcon, RetryIcon, StopIcon } from "@/ui/icons";

import { AddTask } from "./AddTask";
import { isOver } from "./following";
import { retryQuestion } from "./retrying";

export function JobActions({ job }: { readonly job: wire.JobShown }) {
  const mayControl = useMayControl();
  const may = useMay();
  const confirm = useConfirm();
  const toasts = useToasts();
  const queries = useQueryClient();
  const [isAdding, setIsAdding] = useState(false);
  const path = { id: job.id };

  async function changed(): Promise<void> {
    await Promise.all([
      queries.invalidateQueries({ queryKey: ["job", job.id] }),
      queries.invalidateQueries({ queryKey: ["jobs"] }),
    ]);
  }

  const cancel = useMutation({
    mutationFn: () => call(api.POST("/api/v1/jobs/{id}/cancel", { params: { path } })),
    onSuccess: (after) => {
      toasts.say(`${job.name} is ${after.state}`);
      return changed();
    },
    onError: (error) => toasts.fail("The job was not cancelled", error),
  });
  const retry = useMutation({
    mutationFn: () => call(api.POST("/api/v1/jobs/{id}/retry-failed", { params: { path } })),
    onSuccess: ({ ids }) => {
      toasts.say(ids.length === 1 ? "1 task runs again" : `${ids.length.toLocaleString()} tasks run again`);
      return changed();
    },
    onError: (error) => toasts.fail("Nothing runs again", error),
  });

  if (!mayControl(job.owner)) return null;
  const over = isOver(job);
  return (
    <>
      {!over && may({ role: "user", scope: "submit" }) && (
        <Button icon={<PlusIcon />} onClick={() => setIsAdding(true)}>
          Add a task
        </Button>
      )}
      {(job.state === "failed" || job.state === "cancelled") && (
        <Button
          icon={<RetryIcon />}
          busy={retry.isPending}
          onClick={() => void confirm(retryQuestion(job)).then((yes) => yes && retry.mutate())}
        >
          Retry failed
        </Button>
      )}
      {!over && (
        <Button
          kind="danger"
          icon={<StopIcon />}
          busy={cancel.isPending}
          onClick={() =>
            void confirm({
              title: `Cancel ${job.name}?`,
              count: job.open,
              act: `Cancel ${job.open === 1 ? "1 task" : `${job.open.toLocaleString()} tasks`}`,
              danger: true,
              body: <p>What waits is cancelled, what runs is told to stop. What has ended stays as it is.</p>,
            }).then((yes) => yes && cancel.mutate())
          }
        >
          Cancel job
        </Button>
      )}
      {isAdding && <AddTask job={job} close={() => setIsAdding(false)} added={changed} />}
    </>
  );
}
