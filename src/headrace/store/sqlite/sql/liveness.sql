-- name: register
-- A worker's id is one incarnation: a repeat after a lost answer changes nothing.
INSERT INTO headrace_workers (
    id, kind, hostname, pid, state, beat, lease, queues, version, started_at, last_heartbeat
)
VALUES (:id, :kind, :hostname, :pid, :state, :beat, :lease, :queues, :version, :now, :now)
ON CONFLICT (id) DO NOTHING

-- name: heartbeat
-- Changes no row when somebody took the worker for dead.
UPDATE headrace_workers SET beat = beat + 1, last_heartbeat = :now, state = coalesce(:state, state)
WHERE id = :worker AND state <> 'stopped'

-- name: stop_worker
-- The row stays.
UPDATE headrace_workers SET state = 'stopped', stopped_at = coalesce(stopped_at, :now) WHERE id = :worker

-- name: take_over
-- Only while its beat is the one observed: of many rescuers one changes the row.
UPDATE headrace_workers SET state = 'stopped', stopped_at = :now
WHERE id = :worker AND beat = :beat AND state <> 'stopped'

-- name: workers
-- NULL states: all.
SELECT id, kind, hostname, pid, state, beat, lease, queues, version, started_at, last_heartbeat, stopped_at,
    tasks_completed, tasks_failed
FROM headrace_workers
WHERE :states IS NULL OR state IN (SELECT value FROM json_each(:states))
ORDER BY started_at, id

-- name: stopped_holders
-- The index on the holder has only held tasks.
SELECT DISTINCT t.worker FROM headrace_tasks AS t
WHERE t.worker IS NOT NULL
    AND NOT EXISTS (SELECT 1 FROM headrace_workers AS w WHERE w.id = t.worker AND w.state <> 'stopped')
ORDER BY t.worker LIMIT ?

-- name: held
-- As a claim returns them, with their present state.
SELECT id, claim_no, name, kind, queue, pool, lane, priority, arguments, codec, version, options, attempt, losses,
    max_attempts, run_no, job,
    gates IS NOT NULL OR EXISTS (SELECT 1 FROM headrace_queues AS q WHERE q.name = t.queue AND q.settings <> '{}'),
    coalesce(expires_at <= :now, 0), state, order_at, max(coalesce(claimed_at, :now) - eligible_at, 0) / 1000000.0
FROM headrace_tasks AS t WHERE worker = :worker
ORDER BY id LIMIT :limit

-- name: rows_of_worker
-- What a worker that stops gives back.
SELECT t.id, t.claim_no, t.state, t.reason, t.run_no, t.attempt, t.losses, t.lane, t.job, t.critical, t.gates,
    t.keyed, t.queue, t.eligible_at, t.order_at, t.expires_at, t.claimed_at, t.started_at
FROM headrace_tasks AS t
WHERE t.worker = ?
