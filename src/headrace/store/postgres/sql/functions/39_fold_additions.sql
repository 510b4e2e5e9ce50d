-- Adds to a job's total what users' transactions added without locking it; how many. The caller holds the counters.
CREATE OR REPLACE FUNCTION headrace.fold_additions_v1(the_job bigint)
RETURNS bigint
LANGUAGE plpgsql
SET enable_seqscan = off
AS $function$
DECLARE
    added bigint;
BEGIN
    WITH gone AS (DELETE FROM headrace.job_additions a WHERE a.job = the_job RETURNING a.n)
    SELECT coalesce(sum(gone.n), 0) INTO added FROM gone;
    IF added > 0 THEN
        UPDATE headrace.job_counts c SET total = c.total + added WHERE c.job = the_job;
    END IF;
    RETURN added;
END
$function$;
