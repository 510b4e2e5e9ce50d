import { useState } from "react";
import { useQueryClient } from "@tanstack/react-query";

import { Button, useConfirm, useToasts } from "@/ui";
import { RetryIcon, StopIcon, TrashIcon } from "@/ui/icons";

import { actInBulk, countBulk, type BulkAct } from "../requests";
import type { Filters } from "../search/query";
import { answersText, criteriaFor, noneText, wordsFor, type Chosen } from "./bulk";
import styles from "./BulkBar.module.css";

interface BulkBarProps {
  readonly ids: readonly number[];
  /** Every row that is shown is chosen, and there are others behind them. */
  readonly offersAll: boolean;
  readonly filters: Filters;
  readonly isNarrowed: boolean;
  done(): void;
}

/** What can be done with the rows that were chosen, or with all that the search finds. */
export function BulkBar({ ids, offersAll, filters, isNarrowed, done }: BulkBarProps) {
  const [all, setAll] = useState(false);
  const [busy, setBusy] = useState<BulkAct | null>(null);
  const confirm = useConfirm();
  const toasts = useToasts();
  const queries = useQueryClient();
  const isAll = all && offersAll;
  const chosen: Chosen = isAll ? { kind: "matching", filters } : { kind: "rows", ids };

  async function act(what: BulkAct): Promise<void> {
    const criteria = criteriaFor(what, chosen);
    if (criteria === null) {
      toasts.say(noneText(what));
      return;
    }
    setBusy(what);
    try {
      const counted = await countBulk(what, criteria);
      if (counted.count.n === 0) {
        toasts.say(noneText(what));
        return;
      }
      const { body, ...words } = wordsFor(what, chosen, counted.count);
      if (!(await confirm({ ...words, body: <p>{body}</p>, count: counted.count.n, danger: what !== "retry" }))) return;
      const answered = await actInBulk(what, criteria, counted);
      toasts.say(answersText(answered.answers));
      done();
      await queries.invalidateQueries({ queryKey: ["tasks"] });
    } catch (error) {
      toasts.fail("Nothing was changed, or not all of it", error);
    } finally {
      setBusy(null);
    }
  }

  return (
    <div className={styles.bar} role="region" aria-label="Chosen tasks">
      <span className={styles.text} role="status">
        {isAll ? (
          <strong>{isNarrowed ? "Everything that this search finds" : "Every task there is"}</strong>
        ) : (
          <>
            <strong>{ids.length.toLocaleString()}</strong> chosen
          </>
        )}
      </span>
      {offersAll && (
        <Button kind="quiet" onClick={() => setAll(!isAll)}>
          {isAll ? `Only the ${ids.length} that are shown` : isNarrowed ? "Choose all that are found" : "Choose all there are"}
        </Button>
      )}
      <span className={styles.acts}>
        <Button icon={<RetryIcon />} busy={busy === "retry"} onClick={() => void act("retry")}>
          Retry
        </Button>
        <Button icon={<StopIcon />} busy={busy === "cancel"} onClick={() => void act("cancel")}>
          Cancel
        </Button>
        <Button icon={<TrashIcon />} busy={busy === "delete"} onClick={() => void act("delete")}>
          Delete
        </Button>
        <Button kind="quiet" onClick={done}>
          Choose none
        </Button>
      </span>
    </div>
  );
}
