import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { Link } from "react-router";

import { Button, countText, Dialog, Problem, Skeleton, StateBadge, useToasts } from "@/ui";

import { clearTask } from "../requests";
import styles from "./Task.module.css";

/** Shows what would run again before it does. */
export function ClearDialog({ id, close }: { readonly id: number; close(): void }) {
  const queries = useQueryClient();
  const toasts = useToasts();
  // Asked anew each time: what is below it may have changed since.
  const plan = useQuery({ queryKey: ["clearing", id], queryFn: () => clearTask(id, true), gcTime: 0, staleTime: 0, retry: false });
  const clear = useMutation({
    mutationFn: () => clearTask(id, false),
    onSuccess: ({ count }) => {
      toasts.say(`${countText(count)} run again`);
      close();
      void queries.invalidateQueries({ queryKey: ["tasks"] });
      void queries.invalidateQueries({ queryKey: ["jobs"] });
      return queries.invalidateQueries({ queryKey: ["task"] });
    },
    onError: (error) => toasts.fail("Nothing was cleared", error),
  });
  const count = plan.data?.count;
  const noun = count !== undefined && count.n === 1 && !count.more ? "task" : "tasks";
  return (
    <Dialog
      title="Clear with what follows"
      close={close}
      actions={
        <>
          <Button onClick={close}>Keep as it is</Button>
          <Button kind="danger" disabled={plan.data === undefined} busy={clear.isPending} onClick={() => clear.mutate()}>
            {count === undefined ? "Clear" : `Run ${countText(count)} ${noun} again`}
          </Button>
        </>
      }
    >
      <div className="stack">
        <p>This task and everything that waits for it runs once more, whatever became of it. Results of before are dropped.</p>
        {plan.isFetching && plan.data === undefined && <Skeleton lines={3} />}
        {plan.error !== null && <Problem title="It cannot be cleared now" error={plan.error} retry={() => void plan.refetch()} />}
        {plan.data !== undefined && (
          <ul className={styles.cleared} aria-label="What would run again">
            {plan.data.items.map((each) => (
              <li key={each.id}>
                <Link to={`/tasks/${each.id}`} onClick={close}>
                  {each.label ?? each.name} <span className="muted">#{each.id}</span>
                </Link>
                <StateBadge state={each.state} />
              </li>
            ))}
            {count?.more === true && <li className="muted">and more</li>}
          </ul>
        )}
      </div>
    </Dialog>
  );
}
