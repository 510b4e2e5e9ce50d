import { useQueryClient } from "@tanstack/react-query";
import { useCallback } from "react";

import { api, call, useListing, type wire } from "@/api";
import { useLiveMessages } from "@/live";
import { Button, Empty, Page, Problem, Skeleton } from "@/ui";

import styles from "./Approvals.module.css";
import { Request } from "./Request";

const PAGE = 20;
const KEY = ["tasks", "approvals"] as const;

export function Component() {
  const queries = useQueryClient();
  const waiting = useListing<wire.TaskSummary>(
    KEY,
    (cursor, signal) =>
      call(
        api.GET("/api/v1/tasks", {
          signal,
          params: { query: { status: ["pending_approval"], limit: PAGE, ...(cursor === null ? {} : { cursor }) } },
        }),
      ),
    { refreshEach: 10_000 },
  );
  // Somebody submitted something, or decided: what waits may be another by now.
  useLiveMessages(
    { kind: "tasks" },
    useCallback(() => void queries.invalidateQueries({ queryKey: KEY }), [queries]),
  );
  return (
    <Page
      title="Approvals"
      aside={!waiting.isPending && waiting.items.length > 0 && <span className="muted">{countText(waiting.items.length, waiting.hasMore)}</span>}
    >
      {waiting.problem !== null && <Problem error={waiting.problem} retry={waiting.refresh} />}
      {waiting.isPending && <Skeleton />}
      {!waiting.isPending && waiting.problem === null && waiting.items.length === 0 && (
        <div className="card">
          <Empty title="Nothing waits for your word">
            Commands of users wait here, and so do tasks that are declared <code>@app.task(approval="operator")</code> and the
            questions of workflows, <code>approve(…)</code>.
          </Empty>
        </div>
      )}
      <ul className={styles.list} aria-label="What waits for approval">
        {waiting.items.map((task) => (
          <li key={task.id}>
            <Request task={task} />
          </li>
        ))}
      </ul>
      {waiting.hasMore && (
        <div className={styles.more}>
          <Button busy={waiting.isLoadingMore} onClick={waiting.more}>
            Show more
          </Button>
        </div>
      )}
    </Page>
  );
}

function countText(shown: number, hasMore: boolean): string {
  return `${shown.toLocaleString("en-US")}${hasMore ? " or more wait" : shown === 1 ? " waits" : " wait"}`;
}
