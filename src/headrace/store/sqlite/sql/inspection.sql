-- name: get_live
-- The columns of a TaskRecord, in its order.
SELECT id, name, kind, queue, pool, lane, priority, state, reason, 0, arguments, codec, version, options, attempt,
    max_attempts, losses, claim_no, run_no, worker, job, critical, waiting_on, created_at, enqueued_at, eligible_at,
    expires_at, claimed_at, started_at, NULL, cancelling_at, progress, NULL, NULL, NULL, NULL, NULL
FROM headrace_tasks WHERE id IN (SELECT value FROM json_each(?))

-- name: get_done
-- The same of what ended.
SELECT id, name, kind, queue, pool, lane, priority, state, reason, state = 'failed' AND dead_letter, arguments, codec,
    version, options, attempt, max_attempts, losses, claim_no, run_no, worker, job, critical, NULL, created_at, enqueued_at, eligible_at,
    expires_at, claimed_at, started_at, finished_at, cancelling_at, progress, result, result_ref, result_expires_at,
    error_class, error_message
FROM headrace_history WHERE id IN (SELECT value FROM json_each(?))

-- name: attempts
-- In the order of the claims.
SELECT task, claim_no, run_no, attempt, state, charged, worker, executor, handle, claimed_at, started_at, finished_at,
    error_class, error_message, traceback, exit_code, recorded_by, late_state, late_at
FROM headrace_attempts WHERE task = ? ORDER BY claim_no

-- name: live_counts
-- The live table is small whatever the past.
SELECT state, count(*) FROM headrace_tasks GROUP BY state

-- name: outcome_counts
-- Summed by the workers themselves.
SELECT outcome, sum(n) FROM headrace_outcomes GROUP BY outcome

-- name: append_log
-- A line written twice is kept once.
INSERT INTO headrace_logs (task, claim_no, seq, at, stream, line) VALUES (?, ?, ?, ?, ?, ?)
ON CONFLICT (task, claim_no, seq) DO NOTHING

-- name: logs
-- NULL claim: of all attempts.
SELECT task, claim_no, seq, at, stream, line FROM headrace_logs
WHERE task = :task AND (:claim_no IS NULL OR claim_no = :claim_no) AND seq > :after
ORDER BY claim_no, seq LIMIT :limit

-- name: queue_depths
-- What waits and what runs, by queue.
SELECT queue,
    CASE
        WHEN state = 'pending' AND ready_at IS NOT NULL AND lane = 0 THEN 'primary'
        WHEN state = 'pending' AND ready_at IS NOT NULL THEN 'retry'
        WHEN state = 'pending' AND waiting_on IS NULL THEN 'scheduled'
        WHEN state IN ('pending', 'blocked', 'pending_approval', 'lost') THEN 'waiting'
        WHEN state = 'claimed' THEN 'claimed'
        ELSE 'running'
    END AS depth,
    count(*)
FROM headrace_tasks GROUP BY queue, depth

-- name: queue_rows
-- Only queues that somebody paused or configured have one.
SELECT name, paused FROM headrace_queues

-- name: set_paused
-- A claim skips paused queues.
INSERT INTO headrace_queues (name, paused) VALUES (:queue, :paused)
ON CONFLICT (name) DO UPDATE SET paused = excluded.paused
