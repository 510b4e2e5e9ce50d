-- name: pause
-- Claims skip the queue from now on.
INSERT INTO headrace.queues (name, paused) VALUES ($1, true) ON CONFLICT (name) DO UPDATE SET paused = true;

-- name: resume
-- Claims see the queue again.
UPDATE headrace.queues SET paused = false WHERE name = $1;

-- name: hold_queue
-- What is set for a queue, held still for a change.
SELECT q.settings FROM headrace.queues q WHERE q.name = $1 FOR UPDATE;

-- name: uncounted
-- Tasks of a queue that run, or will whatever is set now, and are in no slot of its limit. One that is claimed passes the
-- gates yet, unless it has none and its queue had no settings ($3), or is through: then it is in another slot.
-- SKIP LOCKED: whoever holds such a row ends it or passes it through the gates, and to wait for two of them in another
-- order than theirs would be a deadlock.
SELECT t.id, t.claim_no, t.gates FROM headrace.tasks t
WHERE t.worker > '' AND t.queue = $1
  AND NOT EXISTS (SELECT FROM headrace.slots s WHERE s.task = t.id AND s.key = $2)
  AND (t.state <> 'claimed' OR t.gates IS NULL AND $3::boolean
       OR EXISTS (SELECT FROM headrace.slots s WHERE s.task = t.id AND s.claim_no = t.claim_no))
ORDER BY t.id FOR UPDATE SKIP LOCKED;

-- name: set_queue
-- One setting of a queue, by a patch in which null takes away.
INSERT INTO headrace.queues AS q (name, settings) VALUES ($1, jsonb_strip_nulls($2::text::jsonb)::text)
ON CONFLICT (name) DO UPDATE SET settings = jsonb_strip_nulls(q.settings::jsonb || $2::text::jsonb)::text;

-- name: ready_rated
-- Tasks that were put off for a token of the queue's rate, which has changed. Whatever else puts a task off moves its
-- place in the line (`order_at`) as well, but for those of jobs, whose time comes by itself.
UPDATE headrace.tasks t SET ready_at = clock_timestamp(), eligible_at = clock_timestamp()
WHERE t.id IN (
    SELECT w.id FROM headrace.tasks w
    WHERE w.queue = $1 AND w.state = 'pending' AND w.ready_at IS NULL AND w.waiting_on IS NULL
      AND w.eligible_at > clock_timestamp() AND w.order_at <= clock_timestamp() AND w.job IS NULL
      AND strpos(w.gates, '["rate","@queue:') > 0
    LIMIT $2 FOR UPDATE SKIP LOCKED
)
RETURNING t.id;

-- name: queue_names
-- Queues with ready tasks, and those that somebody paused or configured.
SELECT DISTINCT name FROM headrace.queue_names_v1() AS name ORDER BY name;

-- name: queues
-- Every queue that is known or has live tasks, with its depths up to a cap.
SELECT counted.name, coalesce((SELECT q.paused FROM headrace.queues q WHERE q.name = counted.name), false) AS paused,
       coalesce((SELECT q.settings FROM headrace.queues q WHERE q.name = counted.name), '{}') AS settings,
       least(coalesce(sum(counted.n) FILTER (WHERE counted.depth = 'primary'), 0), $1::integer)::integer AS primary,
       least(coalesce(sum(counted.n) FILTER (WHERE counted.depth = 'retry'), 0), $1)::integer AS retry,
       least(coalesce(sum(counted.n) FILTER (WHERE counted.depth = 'scheduled'), 0), $1)::integer AS scheduled,
       least(coalesce(sum(counted.n) FILTER (WHERE counted.depth = 'waiting'), 0), $1)::integer AS waiting,
       least(coalesce(sum(counted.n) FILTER (WHERE counted.depth = 'claimed'), 0), $1)::integer AS claimed,
       least(coalesce(sum(counted.n) FILTER (WHERE counted.depth = 'running'), 0), $1)::integer AS running
FROM (SELECT d.queue AS name, d.depth, d.n FROM headrace.depths_v1($1) AS d) AS counted
GROUP BY counted.name ORDER BY counted.name;

-- name: live_counts
-- Live tasks by state, up to a cap.
SELECT d.state, least(sum(d.n), $1::integer)::bigint AS n FROM headrace.depths_v1($1) AS d
GROUP BY d.state HAVING sum(d.n) > 0;

-- name: outcome_counts
-- The outcomes of the last day, as their workers counted them.
SELECT o.outcome AS state, sum(o.n)::bigint AS n FROM headrace.outcomes o
WHERE o.minute >= (SELECT clock_timestamp() - interval '24 hours') GROUP BY o.outcome;
