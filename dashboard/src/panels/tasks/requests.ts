/** What this panel asks the server. Nothing else in it knows routes. */

import { api, call, nextOf, type Page, type wire } from "@/api";

import { isNarrowed, type Filters } from "./search/query";

export const LIST_PAGE = 50;
/** Of `id` in one request. */
export const MOST_IDS = 100;

export interface TaskPage {
  readonly items: readonly wire.TaskSummary[];
  readonly next: string | null;
  /** How far tasks were looked at one by one, where no index serves the search. */
  readonly searched?: wire.SearchedShown | null;
}

export function listTasks(filters: Filters, cursor: string | null, signal: AbortSignal, limit = LIST_PAGE): Promise<TaskPage> {
  const query = { ...given(filters), limit, ...(cursor === null ? {} : { cursor }) };
  return call(api.GET("/api/v1/tasks", { signal, params: { query } }));
}

export function listByIds(ids: readonly number[], signal: AbortSignal): Promise<TaskPage> {
  const query = { id: ids.slice(0, MOST_IDS), limit: MOST_IDS };
  return call(api.GET("/api/v1/tasks", { signal, params: { query } }));
}

export type BulkAct = "retry" | "cancel" | "delete";

const BULK = {
  retry: "/api/v1/tasks/retry",
  cancel: "/api/v1/tasks/cancel",
  delete: "/api/v1/tasks/delete",
} as const;

/** Which tasks; at least one of them, or `all`. */
export type Criteria = Sent & { readonly all?: true };

export type BulkAnswer = wire.BulkAnswer;

/** Changes nothing: how many they are, and the instant of that. */
export function countBulk(act: BulkAct, criteria: Criteria): Promise<BulkAnswer> {
  return sendBulk(act, { ...criteria, dry_run: true });
}

/** On what was counted, and not on what has come since. */
export function actInBulk(act: BulkAct, criteria: Criteria, { until }: Pick<BulkAnswer, "until">): Promise<BulkAnswer> {
  return sendBulk(act, { ...criteria, until, dry_run: false });
}

function sendBulk(act: BulkAct, body: Partial<wire.Criteria>): Promise<BulkAnswer> {
  // What has a default may be left out, though the types of a body do not say so.
  return call(api.POST(BULK[act], { body: body as wire.Criteria }));
}

export function getTask(id: number, signal: AbortSignal): Promise<wire.TaskDetail> {
  return call(api.GET("/api/v1/tasks/{id}", { signal, params: { path: { id } } }));
}

/** From the last ones back, as many as one page holds. */
export async function getAttempts(id: number, cursor: string | null, signal: AbortSignal): Promise<Page<wire.AttemptShown>> {
  const query = { limit: 500, ...(cursor === null ? {} : { cursor }) };
  const answer = api.GET("/api/v1/tasks/{id}/attempts", { signal, params: { path: { id }, query } });
  const items = await call(answer);
  return { items, next: nextOf((await answer).response.headers.get("Link")) };
}

export function getResult(id: number, reveal: boolean, signal?: AbortSignal): Promise<wire.TaskResult> {
  const query = reveal ? { reveal } : {};
  return call(api.GET("/api/v1/tasks/{id}/result", { ...(signal === undefined ? {} : { signal }), params: { path: { id }, query } }));
}

export function explainTask(id: number, signal: AbortSignal): Promise<wire.ExplanationShown> {
  return call(api.GET("/api/v1/tasks/{id}/explain", { signal, params: { path: { id } } }));
}

export function retryTask(id: number): Promise<wire.Retried> {
  return call(api.POST("/api/v1/tasks/{id}/retry", { params: { path: { id } } }));
}

export function cancelTask(id: number): Promise<wire.CancelAnswered> {
  return call(api.POST("/api/v1/tasks/{id}/cancel", { params: { path: { id } } }));
}

export function deleteTask(id: number): Promise<unknown> {
  return call(api.DELETE("/api/v1/tasks/{id}", { params: { path: { id } } }));
}

export function decideTask(id: number, decision: "approve" | "reject", note: string): Promise<wire.TaskDetail> {
  const path = decision === "approve" ? "/api/v1/tasks/{id}/approve" : "/api/v1/tasks/{id}/reject";
  return call(api.POST(path, { params: { path: { id } }, body: note === "" ? {} : { note } }));
}

export function clearTask(id: number, dryRun: boolean): Promise<wire.Cleared> {
  return call(api.POST("/api/v1/tasks/{id}/clear", { params: { path: { id } }, body: { dry_run: dryRun } }));
}

export function resumeQueue(name: string): Promise<unknown> {
  return call(api.POST("/api/v1/queues/{name}/resume", { params: { path: { name } } }));
}

export function resetBreaker(service: string): Promise<unknown> {
  return call(api.POST("/api/v1/breakers/{service}/reset", { params: { path: { service } } }));
}

/** The first page is soon there, those behind it are as large as the server gives them. */
export function getLogs(id: number, cursor: string | null, signal: AbortSignal): Promise<wire.PageLogLineShown> {
  const query = cursor === null ? { limit: 500 } : { limit: 5000, cursor };
  return call(api.GET("/api/v1/tasks/{id}/logs", { signal, params: { path: { id }, query } }));
}

/** Not a request: the browser follows it, with its cookie. */
export function downloadAddress(id: number, claim: number | null): string {
  return `/api/v1/tasks/${id}/logs/download${claim === null ? "" : `?claim=${claim}`}`;
}

export function getRegistry(signal: AbortSignal): Promise<wire.Registry> {
  return call(api.GET("/api/v1/registry", { signal }));
}

export function getRegistered(name: string, signal: AbortSignal): Promise<wire.Registered> {
  return call(api.GET("/api/v1/registry/{name}", { signal, params: { path: { name } } }));
}

export function submitTask(submission: wire.Submission, key: string): Promise<wire.Submitted> {
  return call(api.POST("/api/v1/tasks", { body: submission, params: { header: { "Idempotency-Key": key } } }));
}

export function reenqueueTask(id: number, copy: wire.Reenqueue, key: string): Promise<wire.Submitted> {
  return call(api.POST("/api/v1/tasks/{id}/reenqueue", { params: { path: { id } }, headers: { "Idempotency-Key": key }, body: copy }));
}

/** As they are sent: lists may not be read-only there. */
type Sent = { -readonly [Name in keyof Filters]?: Filters[Name] extends readonly (infer Item)[] ? Item[] : NonNullable<Filters[Name]> };

/** Without what narrows nothing. */
function given(filters: Filters): Sent {
  const found = Object.entries(filters).filter(([, value]) => (Array.isArray(value) ? value.length > 0 : value !== null));
  return Object.fromEntries(found) as Sent;
}

/** What a bulk act on everything that a search finds is about. An empty search means all of them, and has to say so. */
export function criteriaOf(filters: Filters): Criteria {
  return isNarrowed(filters) ? given(filters) : { all: true };
}
