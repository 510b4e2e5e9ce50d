import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";

import { api, call, type wire } from "@/api";
import { useConfirm, useToasts } from "@/ui";

import { aimText, answersText, bodyOf, queryOf, type Aim } from "./letters";

export type Act = "replay" | "discard";

/** What was made to run again from here. */
export interface Replay {
  readonly at: number;
  readonly what: string;
  readonly answers: Readonly<Record<string, number>>;
  /** The first of them: so many are looked after. */
  readonly ids: readonly number[];
}

const REPLAYS = ["replays"] as const;
const LOOKED_AFTER = 100;
const MOST_REPLAYS = 20;

/** Those of this visit, the last one first. */
export function useReplays(): readonly Replay[] {
  const kept = useQuery<readonly Replay[]>({
    queryKey: REPLAYS,
    queryFn: () => [],
    initialData: [],
    // Nobody is asked for them: they are what was done here.
    enabled: false,
    gcTime: Number.POSITIVE_INFINITY,
  });
  return kept.data;
}

export function useForgetReplays(): () => void {
  const queries = useQueryClient();
  return () => void queries.setQueryData<readonly Replay[]>(REPLAYS, []);
}

interface Done {
  readonly answers: Readonly<Record<string, number>>;
  readonly ids: readonly number[];
}

/** One alone: also for users, who may not act on many. */
async function sendOne(act: Act, id: number): Promise<Done> {
  const params = { params: { path: { id } } };
  if (act === "replay") {
    const { ids } = await call(api.POST("/api/v1/dead-letters/{id}/replay", params));
    return { answers: { retried: ids.length }, ids };
  }
  await call(api.DELETE("/api/v1/dead-letters/{id}", params));
  return { answers: { deleted: 1 }, ids: [] };
}

/** Without what was counted it only counts; with it, it acts on that, and not on what has failed since. */
function send(act: Act, aim: Aim, counted?: wire.BulkAnswer): Promise<wire.BulkAnswer> {
  const how = counted === undefined ? { dry_run: true } : { until: counted.until, dry_run: false };
  if (aim.kind === "chosen") {
    const body = { id: [...aim.ids], dead_letter: true, status: ["failed"], all: false, ...how };
    return call(act === "replay" ? api.POST("/api/v1/tasks/retry", { body }) : api.POST("/api/v1/tasks/delete", { body }));
  }
  const body = { ...bodyOf(aim), ...how };
  return call(act === "replay" ? api.POST("/api/v1/dead-letters/replay", { body }) : api.POST("/api/v1/dead-letters/discard", { body }));
}

/** The first of what an act is about, so that one can see what becomes of them. */
async function firstOf(aim: Aim): Promise<readonly number[]> {
  if (aim.kind === "chosen") return aim.ids.slice(0, LOOKED_AFTER);
  const query = { ...queryOf(aim.filters), ...(aim.kind === "group" ? { group: aim.group } : {}), limit: LOOKED_AFTER };
  const page = await call(api.GET("/api/v1/dead-letters", { params: { query } }));
  return page.items.map((task) => task.id);
}

interface Wanted {
  readonly act: Act;
  readonly aim: Aim;
  /** How the failure is called, for questions and answers. */
  readonly failure: string | null;
}

/** Counts, asks, acts, and says what became of it. Acts on nothing when the answer is no. */
export function useActing() {
  const queries = useQueryClient();
  const toasts = useToasts();
  const confirm = useConfirm();
  return useMutation({
    mutationFn: async ({ act, aim, failure }: Wanted): Promise<Done | null> => {
      const [one, ...others] = aim.kind === "chosen" ? aim.ids : [];
      if (one !== undefined && others.length === 0) {
        const agreed = act === "replay" || (await confirm(question(act, aim, failure, { n: 1, more: false })));
        return agreed ? sendOne(act, one) : null;
      }
      const counted = await send(act, aim);
      const { count } = counted;
      if (count.n === 0) return { answers: {}, ids: [] };
      // Now: while somebody thinks about it, others may come before them.
      const ids = act === "replay" ? await firstOf(aim) : [];
      const agreed = await confirm({ ...question(act, aim, failure, count), count: count.n });
      return agreed ? { answers: (await send(act, aim, counted)).answers, ids } : null;
    },
    onSuccess: (done, { act, aim, failure }) => {
      if (done === null) return undefined;
      const what = aimText(aim, failure);
      if (act === "replay" && done.ids.length > 0) {
        const replay = { at: Date.now(), what, answers: done.answers, ids: done.ids };
        queries.setQueryData<readonly Replay[]>(REPLAYS, (before) => [replay, ...(before ?? [])].slice(0, MOST_REPLAYS));
      }
      toasts.say(`${act === "replay" ? "Replayed" : "Discarded"}: ${what}`, answersText(done.answers));
      return Promise.all([
        queries.invalidateQueries({ queryKey: ["dead-letters"] }),
        queries.invalidateQueries({ queryKey: ["tasks"] }),
      ]);
    },
    onError: (error, { act, aim, failure }) =>
      toasts.fail(`Not ${act === "replay" ? "replayed" : "discarded"}: ${aimText(aim, failure)}`, error),
  });
}

function question(act: Act, aim: Aim, failure: string | null, count: wire.Count) {
  const many = count.more ? `more than ${count.n.toLocaleString("en-US")}` : count.n.toLocaleString("en-US");
  const letters = count.n === 1 ? "dead letter" : "dead letters";
  const uncounted = count.more ? " Counting stopped there." : "";
  return act === "replay"
    ? {
        title: `Replay ${aimText(aim, failure)}?`,
        body: `They run once more, with a fresh budget of attempts. What fails from now on is not taken.${uncounted}`,
        act: `Replay ${many} ${letters}`,
      }
    : {
        title: `Discard ${aimText(aim, failure)}?`,
        body: `They are removed for good, with their logs and results.${uncounted}`,
        act: `Discard ${many} ${letters}`,
        danger: true,
      };
}
