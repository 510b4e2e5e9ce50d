-- name: register
-- A worker's row; its id is one incarnation, so a repeat is the same one.
INSERT INTO headrace.workers (id, kind, hostname, pid, state, beat, lease, queues, version, started_at, last_heartbeat)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, clock_timestamp(), clock_timestamp())
ON CONFLICT (id) DO NOTHING;

-- name: heartbeat
-- Raises the beat of workers that are not stopped; which they were.
UPDATE headrace.workers w
SET beat = w.beat + 1, last_heartbeat = clock_timestamp(), state = coalesce(s.state, w.state)
FROM unnest($1::text[], $2::text[]) AS s(id, state)
WHERE w.id = s.id AND w.state <> 'stopped'
RETURNING w.id;

-- name: stop_worker
-- The worker says goodbye; the row stays.
WITH left_alone AS (DELETE FROM headrace.standbys s WHERE s.worker = $1)
UPDATE headrace.workers SET state = 'stopped', stopped_at = clock_timestamp() WHERE id = $1 AND state <> 'stopped';

-- name: take_over
-- Stops a worker whose beat is still the one observed; only one caller changes the row.
WITH stopped AS (
    UPDATE headrace.workers SET state = 'stopped', stopped_at = clock_timestamp()
    WHERE id = $1 AND beat = $2 AND state <> 'stopped'
    RETURNING id
), left_alone AS (
    -- And what others left behind who were stopped in the moment in which they stood by.
    DELETE FROM headrace.standbys s
    WHERE s.worker IN (SELECT id FROM stopped) OR s.renewed_at < clock_timestamp() - interval '1 hour'
)
SELECT id FROM stopped;

-- name: workers
-- Workers, newest first.
SELECT id, kind, hostname, pid, state, beat, lease, queues, version, started_at, last_heartbeat, stopped_at,
       tasks_completed, tasks_failed
FROM headrace.workers WHERE cardinality($1::text[]) = 0 OR state = ANY ($1) ORDER BY started_at DESC, id;

-- name: stopped_holders
-- Workers that hold tasks and are stopped or unknown.
SELECT worker FROM headrace.stopped_holders_v1($1) AS worker;

-- name: held
-- What a worker holds, in the shape of a claim.
SELECT t.id, t.claim_no, t.name, t.kind, t.queue, t.pool, t.lane, t.priority, t.arguments, t.codec, t.version, t.options,
       t.attempt, t.losses, t.max_attempts, t.run_no, t.job,
       t.gates IS NOT NULL OR EXISTS (
           SELECT FROM headrace.queues q WHERE q.name = t.queue AND q.settings <> '{}'
       ) AS gated,
       coalesce(t.expires_at <= clock_timestamp(), false) AS expired, t.state, t.order_at,
       greatest(extract(epoch FROM t.claimed_at - t.eligible_at), 0)::double precision AS waited
FROM headrace.tasks t WHERE t.worker = $1
ORDER BY t.id LIMIT $2;
