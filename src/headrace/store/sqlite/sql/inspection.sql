-- name: get_live
-- The columns of a TaskRecord, in its order.
SELECT id, name, kind, queue, pool, lane, priority, state, reason, 0, arguments, codec, version, options, attempt,
    max_attempts, losses, claim_no, run_no, worker, job, critical, waiting_on, created_at, enqueued_at, eligible_at,
    expires_at, claimed_at, started_at, NULL, cancelling_at, progress, NULL, NULL, NULL, NULL, NULL, owner
FROM headrace_tasks WHERE id IN (SELECT value FROM json_each(?))

-- name: get_done
-- The same of what ended.
SELECT id, name, kind, queue, pool, lane, priority, state, reason, state = 'failed' AND dead_letter, arguments, codec,
    version, options, attempt, max_attempts, losses, claim_no, run_no, worker, job, critical, NULL, created_at, enqueued_at, eligible_at,
    expires_at, claimed_at, started_at, finished_at, cancelling_at, progress, result, result_ref, result_expires_at,
    error_class, error_message, owner
FROM headrace_history WHERE id IN (SELECT value FROM json_each(?))

-- name: attempts
-- The executions of a task before a claim, from the last on: no more of them are read than are wanted. A completed history
-- row whose claim has no row here, or only the refused report of another, is itself the attempt of that claim.
SELECT * FROM (
    SELECT a.task, a.claim_no, a.run_no, a.attempt, a.state, a.charged, a.worker, a.executor, a.handle, a.claimed_at,
        a.started_at, a.finished_at, a.error_class, a.error_message, a.traceback, a.exit_code, a.recorded_by,
        a.late_state, a.late_at
    FROM headrace_attempts AS a
    WHERE a.task = :task AND a.claim_no < coalesce(:before, 2147483647) AND NOT (a.state = 'refused' AND EXISTS (
        SELECT 1 FROM headrace_history AS h WHERE h.id = a.task AND h.claim_no = a.claim_no AND h.state = 'completed'
    ))
    ORDER BY a.claim_no DESC LIMIT :limit
)
UNION ALL
SELECT h.id, h.claim_no, h.run_no, h.attempt, 'succeeded', 1, h.worker, h.executor, a.handle, h.claimed_at,
    h.started_at, h.finished_at, NULL, NULL, NULL, NULL, 'worker', a.late_state, a.late_at
FROM headrace_history AS h LEFT JOIN headrace_attempts AS a ON a.task = h.id AND a.claim_no = h.claim_no
WHERE h.id = :task AND h.claim_no < coalesce(:before, 2147483647) AND h.state = 'completed' AND coalesce(a.state, 'refused') = 'refused'
ORDER BY 2 DESC LIMIT :limit

-- name: outcome_counts
-- Summed by the workers themselves.
SELECT outcome, sum(n) FROM headrace_outcomes WHERE minute >= ? GROUP BY outcome

-- name: ended_count
-- Of one state, up to the cap, without a look at the rows.
SELECT count(*) FROM (
    SELECT 1 FROM headrace_history INDEXED BY headrace_history_state WHERE state = :state LIMIT :cap
)

-- name: waiting_retries
-- Among the first by their time, up to the cap. One that was put back since its last failure waits for something else.
SELECT count(*) FROM (
    SELECT id, lane, attempt, claim_no, eligible_at FROM headrace_tasks INDEXED BY headrace_tasks_due
    WHERE state = 'pending' AND ready_at IS NULL AND waiting_on IS NULL
    LIMIT :cap
) AS d
WHERE d.lane = 1 AND d.attempt > 0 AND d.eligible_at > :now AND (d.claim_no <= d.attempt OR EXISTS (
    SELECT 1 FROM headrace_attempts AS a WHERE a.task = d.id AND a.claim_no = d.claim_no AND a.charged
))

-- name: logs
-- NULL claim: of all attempts.
SELECT task, claim_no, seq, at, stream, line FROM headrace_logs
WHERE task = :task AND (:claim_no IS NULL OR claim_no = :claim_no) AND seq > :after
    AND (claim_no, seq) > (:seen_claim, :seen_seq)
ORDER BY claim_no, seq LIMIT :limit

-- name: live_names
-- Over the oldest tasks, in the order of the table.
SELECT name, kind, count(*), min(id) FROM (SELECT name, kind, id FROM headrace_tasks ORDER BY id LIMIT ?)
GROUP BY name, kind ORDER BY name, kind

-- name: gate_holders
-- By the primary key's first column.
SELECT task FROM headrace_slots WHERE key = :key ORDER BY slot LIMIT :limit

-- name: order_holders
-- Whoever is in the slot, and the first in the order, which is the same one while it runs.
SELECT task FROM headrace_slots WHERE key = :key
UNION
SELECT id FROM (SELECT id FROM headrace_tasks WHERE order_key = :order ORDER BY created_at, id LIMIT 1)
ORDER BY 1 LIMIT :limit

-- name: queue_names
-- From one queue to the next over the ready index, however many tasks wait in each.
WITH RECURSIVE ready (queue) AS (
    SELECT (
        SELECT t.queue FROM headrace_tasks AS t INDEXED BY headrace_tasks_ready
        WHERE t.state = 'pending' AND t.ready_at IS NOT NULL
        ORDER BY t.queue LIMIT 1
    )
    UNION ALL
    SELECT (
        SELECT t.queue FROM headrace_tasks AS t INDEXED BY headrace_tasks_ready
        WHERE t.state = 'pending' AND t.ready_at IS NOT NULL AND t.queue > ready.queue
        ORDER BY t.queue LIMIT 1
    )
    FROM ready WHERE ready.queue IS NOT NULL
)
SELECT queue FROM ready WHERE queue IS NOT NULL
UNION
SELECT name FROM headrace_queues
ORDER BY 1

-- name: ready_count
-- Up to the cap. The index is named: after ANALYZE of a large backlog SQLite would rather scan the table.
SELECT count(*) FROM (
    SELECT 1 FROM headrace_tasks INDEXED BY headrace_tasks_ready
    WHERE state = 'pending' AND ready_at IS NOT NULL
    LIMIT ?
)

-- name: scheduled_counts
-- The first ones by their time, up to the cap.
SELECT queue, count(*) FROM (
    SELECT queue FROM headrace_tasks INDEXED BY headrace_tasks_due
    WHERE state = 'pending' AND ready_at IS NULL AND waiting_on IS NULL
    LIMIT ?
)
GROUP BY queue

-- name: waiting_counts
-- Who waits for something else than time and a worker, up to the cap. Word for word the predicate of the index.
SELECT queue, state, count(*) FROM (
    SELECT queue, state FROM headrace_tasks INDEXED BY headrace_tasks_waiting
    WHERE waiting_on IS NOT NULL OR (state = 'pending_approval' OR state = 'blocked' OR state = 'lost')
    LIMIT ?
)
GROUP BY queue, state

-- name: held_counts
-- What workers hold, up to the cap.
SELECT queue, state, count(*) FROM (
    SELECT queue, state FROM headrace_tasks INDEXED BY headrace_tasks_worker
    WHERE worker IS NOT NULL
    LIMIT ?
)
GROUP BY queue, state

-- name: queue_rows
-- Only queues that somebody paused or configured have one.
SELECT name, paused, settings FROM headrace_queues

-- name: set_paused
-- A claim skips paused queues.
INSERT INTO headrace_queues (name, paused) VALUES (:queue, :paused)
ON CONFLICT (name) DO UPDATE SET paused = excluded.paused
