-- name: make_completed
-- The outcomes of one batch, in memory and of this connection alone. Written once, it lets each table be changed by one
-- statement for the whole batch: a statement for each row costs SQLite four times as much.
CREATE TEMP TABLE IF NOT EXISTS headrace_completed (
    id INTEGER PRIMARY KEY, claim_no INTEGER, executor TEXT, ran_for INTEGER, result TEXT, result_ref TEXT,
    result_expires_at INTEGER
)

-- name: note_completed
-- One outcome.
INSERT INTO temp.headrace_completed (id, claim_no, executor, ran_for, result, result_ref, result_expires_at)
VALUES (?, ?, ?, ?, ?, ?, ?)

-- name: remarkable_completed
-- In one pass over the rows: whose claim no longer holds, and those that have something beside their row.
SELECT done.id, t.id IS NULL, t.job, t.keyed, t.gates, t.started_at IS NOT NULL
FROM temp.headrace_completed AS done
LEFT JOIN headrace_tasks AS t
    ON t.id = done.id AND t.claim_no = done.claim_no AND t.worker = ?
    AND t.state IN ('claimed', 'running', 'paused', 'cancelling')
WHERE t.id IS NULL OR t.job IS NOT NULL OR t.keyed OR t.gates IS NOT NULL OR t.started_at IS NOT NULL

-- name: drop_unfenced
-- Nothing is written of those.
DELETE FROM temp.headrace_completed WHERE id IN (SELECT value FROM json_each(?))

-- name: completed_attempts
-- As `close_attempt` does, of those whose start was written: the attempt of any other is its history row. The worker's
-- stopwatch and the clock differ a little; nothing started before its claim.
INSERT INTO headrace_attempts (
    task, claim_no, run_no, attempt, state, charged, worker, executor, claimed_at, started_at, finished_at, recorded_by
)
SELECT
    t.id, t.claim_no, t.run_no, t.attempt + 1, 'succeeded', 1, t.worker, done.executor, t.claimed_at, t.started_at,
    max(:now, t.started_at), 'worker'
FROM temp.headrace_completed AS done CROSS JOIN headrace_tasks AS t ON t.id = done.id
WHERE t.started_at IS NOT NULL
ON CONFLICT (task, claim_no) DO UPDATE SET
    attempt = excluded.attempt, state = excluded.state, charged = excluded.charged, worker = excluded.worker,
    claimed_at = excluded.claimed_at,
    executor = coalesce(excluded.executor, executor), started_at = coalesce(started_at, excluded.started_at),
    finished_at = excluded.finished_at, error_class = NULL, error_message = NULL, traceback = NULL, exit_code = NULL,
    recorded_by = excluded.recorded_by

-- name: completed_history
-- As `insert_history` does.
INSERT INTO headrace_history (
    id, name, kind, queue, pool, lane, priority, state, claim_no, attempt, losses, run_no, max_attempts, worker, job,
    critical, arguments, codec, version, options, gates, order_key, keyed, max_age, created_at, enqueued_at,
    eligible_at, order_at, expires_at, claimed_at, started_at, cancelling_at, progress, finished_at, dead_letter,
    result, result_ref, result_expires_at, executor, owner
)
SELECT
    t.id, t.name, t.kind, t.queue, t.pool, t.lane, t.priority, 'completed', t.claim_no, t.attempt + 1, t.losses,
    t.run_no, t.max_attempts, t.worker, t.job, t.critical, t.arguments, t.codec, t.version, t.options, t.gates,
    t.order_key, t.keyed, t.max_age, t.created_at, t.enqueued_at, t.eligible_at, t.order_at, t.expires_at, t.claimed_at,
    coalesce(t.started_at, max(:now - done.ran_for, coalesce(t.claimed_at, 0))), t.cancelling_at, t.progress,
    max(
        :now,
        coalesce(t.started_at, max(:now - done.ran_for, coalesce(t.claimed_at, 0)), t.claimed_at, t.enqueued_at)
    ),
    t.dead_letter, done.result, done.result_ref, done.result_expires_at, done.executor, t.owner
FROM temp.headrace_completed AS done CROSS JOIN headrace_tasks AS t ON t.id = done.id

-- name: delete_completed
-- The other half of the move.
DELETE FROM headrace_tasks WHERE id IN (SELECT id FROM temp.headrace_completed)

-- name: clear_completed
-- For the next batch.
DELETE FROM temp.headrace_completed
