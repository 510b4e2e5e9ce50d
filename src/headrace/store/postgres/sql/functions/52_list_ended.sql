-- The ids of ended tasks that finished before a cursor, the last finished first: one probe of an index per state, or per
-- queue, name and state, each of which stops at the limit. A queue or a name that is not given is walked from one to the
-- next over the index, however many tasks each has. The first column of a probe's index is asked for by ANY and stands
-- in the order: no other index gives that order, and a sort is the last resort, so that no statistics make the planner
-- walk what does not match. (The sort of what was found looks dear for the same reason: hence no compiler.)
CREATE OR REPLACE FUNCTION headrace.list_ended_v1(
    of_states text[], of_queues text[], of_names text[], of_worker text, is_dead boolean, before_at timestamptz,
    before_id bigint, most integer
)
RETURNS SETOF bigint
LANGUAGE plpgsql
STABLE
SET enable_seqscan = off
SET enable_bitmapscan = off
SET enable_sort = off
SET jit = off
SET plan_cache_mode = force_custom_plan
AS $function$
BEGIN
    before_at := coalesce(before_at, 'infinity');
    before_id := coalesce(before_id, 9223372036854775807);
    IF cardinality(of_queues) = 0 AND cardinality(of_names) = 0 THEN
        RETURN QUERY
        SELECT found.id FROM (SELECT DISTINCT unnest(of_states)) AS s(state) CROSS JOIN LATERAL (
            SELECT h.id, h.finished_at FROM headrace.history h
            WHERE h.state = ANY (ARRAY[s.state]) AND (h.finished_at, h.id) < (before_at, before_id)
              AND (of_worker IS NULL OR h.worker = of_worker)
              AND (is_dead IS NULL OR (h.dead_letter AND h.state = 'failed') = is_dead)
            ORDER BY h.state DESC, h.finished_at DESC, h.id DESC LIMIT most
        ) AS found
        ORDER BY found.finished_at DESC, found.id DESC LIMIT most;
        RETURN;
    END IF;
    RETURN QUERY
    WITH RECURSIVE every_queue(queue) AS (
        SELECT (SELECT h.queue FROM headrace.history h ORDER BY h.queue LIMIT 1) WHERE cardinality(of_queues) = 0
        UNION ALL
        SELECT (SELECT h.queue FROM headrace.history h WHERE h.queue > e.queue ORDER BY h.queue LIMIT 1)
        FROM every_queue e WHERE e.queue IS NOT NULL
    ), queues(queue) AS (
        SELECT unnest(of_queues) UNION SELECT e.queue FROM every_queue e WHERE e.queue IS NOT NULL
    ), every_name(queue, name) AS (
        SELECT q.queue, (
            SELECT h.name FROM headrace.history h WHERE h.queue = q.queue ORDER BY h.name LIMIT 1
        )
        FROM queues q WHERE cardinality(of_names) = 0
        UNION ALL
        SELECT e.queue, (
            SELECT h.name FROM headrace.history h WHERE h.queue = e.queue AND h.name > e.name ORDER BY h.name LIMIT 1
        )
        FROM every_name e WHERE e.name IS NOT NULL
    ), places(queue, name) AS (
        SELECT q.queue, n.name FROM queues q CROSS JOIN (SELECT DISTINCT unnest(of_names)) AS n(name)
        UNION ALL
        SELECT e.queue, e.name FROM every_name e WHERE e.name IS NOT NULL
    )
    SELECT found.id
    FROM places p CROSS JOIN (SELECT DISTINCT unnest(of_states)) AS s(state) CROSS JOIN LATERAL (
        SELECT h.id, h.finished_at FROM headrace.history h
        WHERE h.queue = ANY (ARRAY[p.queue]) AND h.name = p.name AND h.state = s.state
          AND (h.finished_at, h.id) < (before_at, before_id)
          AND (of_worker IS NULL OR h.worker = of_worker)
          AND (is_dead IS NULL OR (h.dead_letter AND h.state = 'failed') = is_dead)
        ORDER BY h.queue DESC, h.finished_at DESC, h.id DESC LIMIT most
    ) AS found
    ORDER BY found.finished_at DESC, found.id DESC LIMIT most;
END
$function$;
