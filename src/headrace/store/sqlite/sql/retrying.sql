-- name: ended_rows
-- What a person may run again.
SELECT id, state, job, keyed FROM headrace_history
WHERE id IN (SELECT value FROM json_each(?)) AND state IN ('completed', 'failed', 'cancelled')
ORDER BY id

-- name: blocked_keys
-- A unique key the task had that another task holds now.
SELECT 1 FROM headrace_keys AS mine JOIN headrace_keys AS other ON other.scope = 'unique' AND other.key = mine.key
WHERE mine.scope = 'ended:' || :task AND mine.task = :task AND other.task <> :task
    AND (other.expires_at IS NULL OR other.expires_at > :now)
LIMIT 1

-- name: retake_keys
-- Its unique keys are its own again; a window that had begun ends with the new run.
INSERT INTO headrace_keys (scope, key, task, ttl, expires_at)
SELECT 'unique', key, task, ttl, NULL FROM headrace_keys WHERE scope = 'ended:' || :task AND task = :task
ON CONFLICT (scope, key) DO UPDATE SET task = excluded.task, ttl = excluded.ttl, expires_at = NULL

-- name: drop_key_names
-- They stand as keys now.
DELETE FROM headrace_keys WHERE scope = 'ended:' || :task AND task = :task

-- name: rerun
-- The row moves back: a new run with a fresh budget, in the retry lane, its age counted from now.
INSERT INTO headrace_tasks (
    id, name, kind, queue, pool, lane, priority, state, claim_no, attempt, losses, run_no, max_attempts, job, critical,
    dead_letter, arguments, codec, version, options, gates, order_key, keyed, max_age, created_at, enqueued_at,
    eligible_at, order_at, expires_at, ready_at
)
SELECT
    id, name, kind, queue, pool, 1, priority, 'pending', claim_no, 0, 0, run_no + 1, max_attempts, job, critical,
    dead_letter, arguments, codec, version, options, gates, order_key, keyed, max_age, created_at, max(:now, created_at),
    :now,
    CASE WHEN job IS NULL THEN :now ELSE order_at END, :now + CAST(max_age * 1000000 AS INTEGER), :now
FROM headrace_history WHERE id = :task

-- name: keep_attempt
-- A plain success was told by the row that leaves history.
INSERT INTO headrace_attempts (
    task, claim_no, run_no, attempt, state, charged, worker, executor, claimed_at, started_at, finished_at, recorded_by
)
SELECT id, claim_no, run_no, attempt, 'succeeded', 1, worker, executor, claimed_at, started_at, finished_at, 'worker'
FROM headrace_history WHERE id = ?
ON CONFLICT (task, claim_no) DO UPDATE SET
    run_no = excluded.run_no, attempt = excluded.attempt, state = excluded.state, charged = excluded.charged,
    worker = excluded.worker, executor = excluded.executor, claimed_at = excluded.claimed_at,
    started_at = excluded.started_at, finished_at = excluded.finished_at, recorded_by = excluded.recorded_by
WHERE state = 'refused'

-- name: leave_history
-- The other half of the move.
DELETE FROM headrace_history WHERE id = ? RETURNING queue

-- name: uncount_job
-- What is open again is no longer counted as ended.
UPDATE headrace_job_counts
SET completed = completed - :completed, failed = failed - :failed, cancelled = cancelled - :cancelled, seq = seq + 1
WHERE job = :job
