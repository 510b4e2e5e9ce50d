-- What follows when tasks have ended (they are in history by now): job counters, then keys, then slots. Always in the
-- transaction that ended them.
CREATE OR REPLACE FUNCTION headrace.ended_v1(ids bigint[])
RETURNS void
LANGUAGE plpgsql
SET enable_seqscan = off
SET plan_cache_mode = auto  -- jobs differ by a factor of a million: finish_v1, which calls this, keeps its plan
AS $function$
DECLARE
    counted record;
    with_jobs bigint[] := ids;
BEGIN
    FOR counted IN
        SELECT h.job, count(*) FILTER (WHERE h.state = 'completed') AS completed,
               count(*) FILTER (WHERE h.state = 'failed') AS failed,
               count(*) FILTER (WHERE h.state IN ('cancelled', 'rejected')) AS cancelled,
               bool_or(h.state = 'failed' AND h.critical) AS broken
        FROM headrace.history h WHERE h.id = ANY (ids) AND h.job IS NOT NULL GROUP BY h.job ORDER BY h.job
    LOOP
        with_jobs := with_jobs || headrace.count_job_v1(
            counted.job, counted.completed, counted.failed, counted.cancelled, counted.broken);
    END LOOP;
    PERFORM headrace.free_v1(with_jobs);
END
$function$;
