-- Ends a job when nothing of it is open, or at once when a critical task failed; the caller has counted and holds the
-- counters. Returns the tasks that ended with it.
CREATE OR REPLACE FUNCTION headrace.end_if_over_v1(
    the_job bigint, broken boolean, n_total bigint, n_completed bigint, n_failed bigint, n_cancelled bigint
)
RETURNS bigint[]
LANGUAGE plpgsql
SET enable_seqscan = off
AS $function$
DECLARE
    added bigint;
BEGIN
    IF broken THEN
        RETURN headrace.end_job_v1(the_job, 'failed', 'error');
    ELSIF n_completed + n_failed + n_cancelled < n_total THEN
        RETURN '{}';
    END IF;
    PERFORM FROM headrace.jobs j WHERE j.id = the_job AND j.state IN ('pending', 'running');
    IF NOT FOUND THEN
        -- It was over before: what users' transactions added since is left for `expire`, which finds it by its note.
        RETURN '{}';
    END IF;
    added := headrace.fold_additions_v1(the_job);
    IF n_completed + n_failed + n_cancelled < n_total + added THEN
        RETURN '{}';
    ELSIF n_failed + n_cancelled > 0 AND EXISTS (
        -- Whose failure was left to others to handle and was not, or comes from an earlier run of which a part was
        -- retried. A failure is handled where a task that waited for it has completed. (What was rejected counts as
        -- cancelled.)
        SELECT FROM headrace.history h
        WHERE h.job = the_job AND h.state IN ('failed', 'rejected') AND h.critical AND NOT EXISTS (
            SELECT FROM headrace.dependencies d JOIN headrace.history handler ON handler.id = d.task
            WHERE d.upstream = h.id AND d.kind = 2 AND handler.state = 'completed'
        )
    ) THEN
        RETURN headrace.end_job_v1(the_job, 'failed', 'error');
    ELSIF n_cancelled = n_total + added THEN
        RETURN headrace.end_job_v1(the_job, 'cancelled', NULL);
    END IF;
    RETURN headrace.end_job_v1(the_job, 'completed', NULL);
END
$function$;
