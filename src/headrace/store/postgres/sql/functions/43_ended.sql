-- What follows when tasks have ended (they are in history by now): those that wait for them, then job counters, then
-- keys, then slots. Always in the transaction that ended them.
CREATE OR REPLACE FUNCTION headrace.ended_v1(ids bigint[])
RETURNS void
LANGUAGE plpgsql
SET enable_seqscan = off
SET plan_cache_mode = auto  -- jobs differ by a factor of a million: finish_v1, which calls this, keeps its plan
AS $function$
DECLARE
    counted record;
    ended bigint[];
    with_jobs bigint[] := '{}';
BEGIN
    -- First, so that what waits for a failure says so, and not that its job failed.
    ended := ids || headrace.advance_v1(ids);
    FOR counted IN
        SELECT h.job, count(*) FILTER (WHERE h.state = 'completed') AS completed,
               count(*) FILTER (WHERE h.state = 'failed') AS failed,
               count(*) FILTER (WHERE h.state IN ('cancelled', 'rejected')) AS cancelled,
               bool_or(CASE WHEN h.state IN ('failed', 'rejected') AND h.critical THEN NOT EXISTS (
                   -- Where a task waits for just this failure, or for the end whatever it is, that one runs first.
                   SELECT FROM headrace.dependencies d WHERE d.upstream = h.id AND d.kind <> 0
               ) ELSE false END) AS broken
        FROM unnest(ended) AS x(id)
        -- One by one: see advance_v1.
        CROSS JOIN LATERAL (SELECT o.id, o.job, o.state, o.critical FROM headrace.history o WHERE o.id = x.id LIMIT 1) AS h
        WHERE h.job IS NOT NULL GROUP BY h.job ORDER BY h.job
    LOOP
        with_jobs := with_jobs || headrace.count_job_v1(
            counted.job, counted.completed, counted.failed, counted.cancelled, counted.broken);
    END LOOP;
    IF with_jobs <> '{}' THEN
        PERFORM headrace.advance_awaited_v1(with_jobs);
    END IF;
    PERFORM headrace.free_v1(ended || with_jobs);
END
$function$;
