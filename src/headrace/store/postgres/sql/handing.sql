-- name: stand_by
-- An idle worker lets the next enqueue hand it a task. Not one that is stopped: nobody would run it.
INSERT INTO headrace.standbys AS s (worker, channel, queues, pools, open, renewed_at)
SELECT w.id, $2, $3, $4, true, clock_timestamp() FROM headrace.workers w WHERE w.id = $1 AND w.state <> 'stopped'
ON CONFLICT (worker) DO UPDATE
SET channel = excluded.channel, queues = excluded.queues, pools = excluded.pools, open = true,
    renewed_at = excluded.renewed_at
RETURNING s.worker;

-- name: still_stands
-- It lives, and nothing was handed to it yet.
UPDATE headrace.standbys s SET renewed_at = clock_timestamp() WHERE s.worker = $1 AND s.open RETURNING s.worker;

-- name: stand_down
-- It has something to do; whether nothing was handed to it before, which stays its own.
UPDATE headrace.standbys s SET open = false WHERE s.worker = $1 AND s.open RETURNING s.worker;
