-- name: held_rows
-- What a finish must know of the rows it may change, all in one text: Python gives up its lock for each row that it
-- fetches (see Transaction.insert_all). Parameters: a JSON array of [task, claim_no], the worker.
SELECT json_group_array(json_array(
    t.id, t.claim_no, t.state, t.reason, t.run_no, t.attempt, t.losses, t.lane, t.job, t.critical, t.gates,
    t.keyed, t.queue, t.eligible_at, t.order_at, t.expires_at, t.claimed_at, t.started_at
))
FROM json_each(:refs) AS ref
CROSS JOIN headrace_tasks AS t
    ON t.id = json_extract(ref.value, '$[0]') AND t.claim_no = json_extract(ref.value, '$[1]')
WHERE t.worker = :worker AND t.state IN ('claimed', 'running', 'paused', 'cancelling')

-- name: rows_by_id
-- The same for tasks that nobody holds.
SELECT t.id, t.claim_no, t.state, t.reason, t.run_no, t.attempt, t.losses, t.lane, t.job, t.critical, t.gates,
    t.keyed, t.queue, t.eligible_at, t.order_at, t.expires_at, t.claimed_at, t.started_at
FROM headrace_tasks AS t
WHERE t.id IN (SELECT value FROM json_each(?))

-- name: insert_history
-- A terminal task moves: the live table stays small whatever the past.
INSERT INTO headrace_history (
    id, name, kind, queue, pool, lane, priority, state, reason, claim_no, attempt, losses, run_no, max_attempts, worker,
    job, critical, arguments, codec, version, options, gates, order_key, keyed, max_age, created_at, enqueued_at,
    eligible_at, order_at, expires_at, claimed_at, started_at, cancelling_at, progress, finished_at, dead_letter,
    result, result_ref, result_expires_at, error_class, error_message, executor, owner
)
SELECT
    id, name, kind, queue, pool, lane, priority, :state, :reason, :claim_no, :attempt, :losses, run_no, max_attempts,
    worker, job, critical, arguments, codec, version, options, gates, order_key, keyed, max_age, created_at,
    enqueued_at, eligible_at, order_at, expires_at, claimed_at, :started_at, cancelling_at, progress,
    max(:now, coalesce(:started_at, claimed_at, enqueued_at)),
    dead_letter OR :dead_letter, :result, :result_ref, :result_expires_at, :error_class, :error_message,
    :executor, owner
FROM headrace_tasks WHERE id = :task

-- name: note_asked
-- What nobody has approved yet is not run again without that: see `rerun`.
INSERT INTO headrace_waits (task, step, event, key)
SELECT t.id, 'approval', 'approval', '' FROM headrace_tasks AS t
WHERE t.id IN (SELECT value FROM json_each(?)) AND (t.state = 'pending_approval' OR t.waiting_on = 'approval')
ON CONFLICT (task, step) DO NOTHING

-- name: delete_tasks
-- The other half of the move.
DELETE FROM headrace_tasks WHERE id IN (SELECT value FROM json_each(?))

-- name: requeue
-- Back to waiting; claim_no stays, so the next claim has a new fence. One statement for all of them, as everywhere on
-- this way: one for each would stand still after every row until the thread that runs tasks gives way, with the lock
-- held. The parameter is a JSON array of [task, state, attempt, losses, lane, eligible_at, order_at, ready_at, waiting_on,
-- aged_from].
UPDATE headrace_tasks
SET state = json_extract(given.value, '$[1]'), reason = NULL, worker = NULL, attempt = json_extract(given.value, '$[2]'),
    losses = json_extract(given.value, '$[3]'), lane = json_extract(given.value, '$[4]'),
    eligible_at = json_extract(given.value, '$[5]'), order_at = json_extract(given.value, '$[6]'),
    ready_at = json_extract(given.value, '$[7]'), waiting_on = json_extract(given.value, '$[8]'),
    claimed_at = NULL, started_at = NULL, progress = NULL,
    expires_at = iif(
        json_extract(given.value, '$[9]') IS NULL, expires_at,
        json_extract(given.value, '$[9]') + CAST(max_age * 1000000 AS INTEGER)
    )
FROM json_each(?) AS given
WHERE headrace_tasks.id = json_extract(given.value, '$[0]')

-- name: close_attempts
-- The rows of attempts, in the order of `Attempt`; a start, or the report of a stranger, may have opened them.
INSERT INTO headrace_attempts (
    task, claim_no, run_no, attempt, state, charged, worker, executor, claimed_at, started_at, finished_at,
    error_class, error_message, traceback, exit_code, recorded_by
)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (task, claim_no) DO UPDATE SET
    attempt = excluded.attempt, state = excluded.state, charged = excluded.charged, worker = excluded.worker,
    claimed_at = excluded.claimed_at,
    executor = coalesce(excluded.executor, executor), started_at = coalesce(started_at, excluded.started_at),
    finished_at = excluded.finished_at, error_class = excluded.error_class, error_message = excluded.error_message,
    traceback = excluded.traceback, exit_code = excluded.exit_code, recorded_by = excluded.recorded_by

-- name: outcomes_of_claims
-- What stands for reports that the fence refused: their attempt, the live row, the history. Parameters: [task, claim_no].
-- The attempt of a plain success is its history row, see `attempts`.
SELECT ref.key, iif(own.id IS NULL, a.state, 'succeeded'), iif(own.id IS NULL, a.recorded_by, 'worker'),
    iif(own.id IS NULL, a.worker, own.worker), t.claim_no, t.state, h.claim_no, h.state,
    coalesce(t.run_no, h.run_no), h.worker
FROM json_each(:refs) AS ref
LEFT JOIN headrace_attempts AS a
    ON a.task = json_extract(ref.value, '$[0]') AND a.claim_no = json_extract(ref.value, '$[1]')
LEFT JOIN headrace_tasks AS t ON t.id = json_extract(ref.value, '$[0]')
LEFT JOIN headrace_history AS h ON h.id = json_extract(ref.value, '$[0]')
LEFT JOIN headrace_history AS own
    ON own.id = json_extract(ref.value, '$[0]') AND own.claim_no = json_extract(ref.value, '$[1]')
    AND own.state = 'completed' AND coalesce(a.state, 'refused') = 'refused'

-- name: record_late
-- A refused report is kept beside what stands. A row of its own says nothing of how the claim ended, so it does not
-- hide the success that history tells.
INSERT INTO headrace_attempts (task, claim_no, run_no, state, worker, recorded_by, late_state, late_at)
VALUES (:task, :claim_no, :run_no, 'refused', :worker, :recorded_by, :late_state, :now)
ON CONFLICT (task, claim_no) DO UPDATE SET late_state = excluded.late_state, late_at = excluded.late_at

-- name: count_worker
-- Sums of one batch.
UPDATE headrace_workers SET tasks_completed = tasks_completed + :completed, tasks_failed = tasks_failed + :failed
WHERE id = :worker

-- name: keep_key_names
-- A unique key is free when its task ended. Its name stays with the task for a manual retry, under a scope of its own
-- and as expired since ever, whoever takes the key meanwhile.
INSERT INTO headrace_keys (scope, key, task, ttl, expires_at)
SELECT 'ended:' || task, key, task, ttl, 0 FROM headrace_keys
WHERE scope = 'unique' AND task IN (SELECT value FROM json_each(?))
ON CONFLICT (scope, key) DO NOTHING

-- name: expire_keys
-- A key with a window outlives its task by it.
UPDATE headrace_keys SET expires_at = :now + CAST(ttl * 1000000 AS INTEGER)
WHERE scope = 'unique' AND ttl IS NOT NULL AND task IN (SELECT value FROM json_each(:ids))

-- name: drop_keys
-- The others end with their task.
DELETE FROM headrace_keys
WHERE scope IN ('unique', 'idem') AND ttl IS NULL AND task IN (SELECT value FROM json_each(?))
