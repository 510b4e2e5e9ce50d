-- The first claim of a job starts it, in the claim's transaction. Says true.
-- The state is compared so that no index on it is used: jobs are looked up by the ids that were claimed, however many
-- others wait. Counters, then the job, as everybody locks them.
CREATE OR REPLACE FUNCTION headrace.start_jobs_v1(claimed bigint[])
RETURNS boolean
LANGUAGE plpgsql
SET enable_seqscan = off
SET enable_bitmapscan = off
SET plan_cache_mode = force_generic_plan
AS $function$
DECLARE
    instant CONSTANT timestamptz := clock_timestamp();
    fresh bigint[];
    begun bigint[];
BEGIN
    fresh := ARRAY(
        SELECT c.job FROM headrace.job_counts c
        WHERE c.job = ANY (claimed) AND EXISTS (
            SELECT FROM headrace.jobs j
            WHERE j.id = c.job AND j.started_at IS NULL AND (j.state = 'pending') IS TRUE
        )
        ORDER BY c.job
        FOR UPDATE OF c
    );
    IF fresh = '{}' THEN
        RETURN true;
    END IF;
    WITH started AS (
        UPDATE headrace.jobs j
        SET state = 'running', started_at = instant, deadline_at = instant + make_interval(secs => j.timeout)
        WHERE j.id = ANY (fresh) AND j.started_at IS NULL AND (j.state = 'pending') IS TRUE
        RETURNING j.id
    )
    SELECT array_agg(s.id) INTO begun FROM started s;
    UPDATE headrace.job_counts c SET seq = c.seq + 1 WHERE c.job = ANY (begun);
    PERFORM headrace.note_job_v1(begun);
    RETURN true;
END
$function$;
