-- Live tasks by queue and depth over the indexes that hold them, each up to a cap: what is ready per queue, pool and
-- lane, the rest over the whole ledger. The settings hold the plan: one made for a small table would scan it.
CREATE OR REPLACE FUNCTION headrace.depths_v1(most integer)
RETURNS TABLE (queue text, depth text, state text, n bigint)
LANGUAGE plpgsql
STABLE
SET enable_seqscan = off
SET enable_bitmapscan = off
AS $function$
#variable_conflict use_column
BEGIN
    RETURN QUERY
    SELECT q.name, CASE place.lane WHEN 0 THEN 'primary' ELSE 'retry' END, 'pending', counted.n
    FROM (SELECT DISTINCT name FROM headrace.queue_names_v1() AS name) AS q
    CROSS JOIN (
        SELECT p.pool, l.lane::smallint AS lane
        FROM unnest(ARRAY['coroutine', 'child', 'thread', 'command', 'runner']) AS p(pool), generate_series(0, 1) AS l(lane)
    ) AS place
    CROSS JOIN LATERAL (
        SELECT count(*) AS n FROM (
            SELECT FROM headrace.tasks t
            WHERE t.queue = q.name AND t.pool = place.pool AND t.lane = place.lane
              AND t.state = 'pending' AND t.ready_at IS NOT NULL
            LIMIT most
        ) AS found
    ) AS counted;
    RETURN QUERY
    SELECT found.queue, 'scheduled', 'pending', count(*)
    FROM (
        SELECT t.queue FROM headrace.tasks t
        WHERE t.state = 'pending' AND t.ready_at IS NULL AND t.waiting_on IS NULL
        ORDER BY t.eligible_at LIMIT most
    ) AS found
    GROUP BY found.queue;
    RETURN QUERY
    SELECT found.queue, 'waiting', found.state, count(*)
    FROM (
        SELECT t.queue, t.state FROM headrace.tasks t
        WHERE t.waiting_on IS NOT NULL OR t.state IN ('pending_approval', 'blocked', 'lost')
        LIMIT most
    ) AS found
    GROUP BY found.queue, found.state;
    RETURN QUERY
    SELECT found.queue, CASE found.state WHEN 'claimed' THEN 'claimed' ELSE 'running' END, found.state, count(*)
    FROM (SELECT t.queue, t.state FROM headrace.tasks t WHERE t.worker IS NOT NULL LIMIT most) AS found
    GROUP BY found.queue, found.state;
END
$function$;
