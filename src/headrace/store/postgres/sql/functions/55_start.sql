-- Writes that user code is being entered, with an attempt row; returns the claims it started. Fenced; the holder is
-- compared so that no index on it is used, see finish_v1.
CREATE OR REPLACE FUNCTION headrace.start_v1(the_worker text, tasks bigint[], claim_nos integer[], the_executor text)
RETURNS TABLE (task bigint, claim_no integer)
LANGUAGE plpgsql
SET enable_seqscan = off
SET enable_bitmapscan = off
SET enable_hashjoin = off
SET enable_mergejoin = off
SET plan_cache_mode = force_generic_plan
AS $function$
#variable_conflict use_column
BEGIN
    RETURN QUERY
    WITH begun AS (
        UPDATE headrace.tasks t
        SET state = 'running', started_at = coalesce(t.started_at, clock_timestamp())
        FROM unnest(tasks, claim_nos) AS s(task, claim_no)
        WHERE t.id = ANY (ARRAY[s.task]) AND t.claim_no = s.claim_no AND (t.worker = the_worker) IS TRUE
          AND t.state IN ('claimed', 'running')
        RETURNING t.id, t.claim_no, t.run_no, t.claimed_at, t.started_at
    ), tried AS (
        INSERT INTO headrace.attempts AS a (task, claim_no, run_no, state, worker, executor, claimed_at, started_at)
        SELECT b.id, b.claim_no, b.run_no, 'running', the_worker, the_executor, b.claimed_at, b.started_at FROM begun b
        -- A repeat of this start changes nothing; a stranger's refused report may have made the row before.
        ON CONFLICT (task, claim_no) DO UPDATE
        SET state = excluded.state, worker = excluded.worker, executor = excluded.executor,
            claimed_at = excluded.claimed_at, started_at = excluded.started_at
        WHERE a.state = 'refused'
    )
    SELECT b.id, b.claim_no FROM begun b;
END
$function$;
