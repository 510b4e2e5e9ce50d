-- name: dead_letters
-- Dead letters by id, held still. One whose job is not over stays: its fate and its retry ask for it. So does one that a
-- task that has not ended waits for, or waited for.
SELECT h.id FROM headrace.history h
WHERE h.id = ANY ($1::bigint[]) AND h.dead_letter AND h.state = 'failed'
  AND NOT EXISTS (SELECT FROM headrace.jobs j WHERE j.id = h.job AND j.completed_at IS NULL)
  AND NOT EXISTS (
      SELECT FROM headrace.dependencies d JOIN headrace.tasks t ON t.id = ANY (ARRAY[d.task])
      WHERE d.upstream = ANY (ARRAY[h.id])
  )
ORDER BY h.id FOR UPDATE;

-- name: live_to_remove
-- Of these ids the tasks that have not ended, held still: nobody claims them, and nobody begins to wait for them. The job
-- of one is not over, or is about to end it.
SELECT t.id, t.worker IS NOT NULL AS held, t.job IS NOT NULL AS open_job
FROM headrace.tasks t WHERE t.id = ANY ($1::bigint[]) ORDER BY t.id FOR UPDATE;

-- name: done_to_remove
-- Of these ids the tasks that ended, held still, each with whether its job is not over: its fate and its retry ask for it.
SELECT h.id, false AS held,
       EXISTS (SELECT FROM headrace.jobs j WHERE j.id = h.job AND j.completed_at IS NULL) AS open_job
FROM headrace.history h WHERE h.id = ANY ($1::bigint[]) ORDER BY h.id FOR UPDATE;

-- name: live_waiters
-- Who has not ended and waits for these, or called them. By ANY: see prune_results.
SELECT d.upstream, d.task FROM headrace.dependencies d JOIN headrace.tasks t ON t.id = ANY (ARRAY[d.task])
WHERE d.upstream = ANY ($1::bigint[]);

-- name: remove
-- Removes ended tasks by id with everything that belongs to them, as prune_tasks does. Of their keys only the names kept
-- for a manual retry, or, where $2, all: whoever enqueues the same again makes a new task.
WITH old AS MATERIALIZED (
    SELECT h.id, h.job FROM headrace.history h WHERE h.id = ANY ($1::bigint[])
), notes AS (
    INSERT INTO headrace.meta (key, value)
    SELECT DISTINCT 'pruned job ' || old.job, 'some of its tasks' FROM old WHERE old.job IS NOT NULL ORDER BY 1
    ON CONFLICT (key) DO NOTHING
), attempts AS (
    DELETE FROM headrace.attempts a USING old WHERE a.task = old.id
), logs AS (
    DELETE FROM headrace.logs l USING old WHERE l.task = old.id
), steps AS (
    DELETE FROM headrace.checkpoints c USING old WHERE c.task = old.id
), waits AS (
    DELETE FROM headrace.waits w USING old WHERE w.task = old.id
), edges AS (
    DELETE FROM headrace.dependencies d USING old WHERE d.task = old.id
), barriers AS (
    DELETE FROM headrace.barriers b USING old WHERE b.task = old.id
), names AS (
    DELETE FROM headrace.keys k USING old WHERE k.task = old.id AND ($2 OR k.expires_at = to_timestamp(0))
)
DELETE FROM headrace.history h USING old WHERE h.id = old.id RETURNING h.id;
