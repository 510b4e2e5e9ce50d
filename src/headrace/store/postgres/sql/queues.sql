-- name: pause
-- Claims skip the queue from now on.
INSERT INTO headrace.queues (name, paused) VALUES ($1, true) ON CONFLICT (name) DO UPDATE SET paused = true;

-- name: resume
-- Claims see the queue again.
UPDATE headrace.queues SET paused = false WHERE name = $1;

-- name: queues
-- Every queue that is known or has live tasks, with its depths.
SELECT name, coalesce(bool_or(paused), false) AS paused, sum(ready_primary)::integer AS primary, sum(ready_retry)::integer AS retry,
       sum(scheduled)::integer AS scheduled, sum(waiting)::integer AS waiting, sum(claimed)::integer AS claimed,
       sum(running)::integer AS running
FROM (
    SELECT q.name, q.paused, 0 AS ready_primary, 0 AS ready_retry, 0 AS scheduled, 0 AS waiting, 0 AS claimed, 0 AS running
    FROM headrace.queues q
    UNION ALL
    SELECT t.queue, NULL,
           count(*) FILTER (WHERE t.ready_at IS NOT NULL AND t.lane = 0),
           count(*) FILTER (WHERE t.ready_at IS NOT NULL AND t.lane = 1),
           count(*) FILTER (WHERE t.state = 'pending' AND t.ready_at IS NULL AND t.waiting_on IS NULL),
           count(*) FILTER (WHERE t.waiting_on IS NOT NULL),
           count(*) FILTER (WHERE t.state = 'claimed'),
           count(*) FILTER (WHERE t.state IN ('running', 'paused', 'cancelling'))
    FROM headrace.tasks t GROUP BY t.queue
) AS counted
GROUP BY name ORDER BY name;
