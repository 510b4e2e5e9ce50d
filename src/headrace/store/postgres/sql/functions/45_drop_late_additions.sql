-- A user's transaction added tasks to a job and committed after the job had ended: cancels them and counts them.
CREATE OR REPLACE FUNCTION headrace.drop_late_additions_v1(the_job bigint)
RETURNS integer
LANGUAGE plpgsql
SET enable_seqscan = off
AS $function$
DECLARE
    gone bigint[];
BEGIN
    PERFORM FROM headrace.tasks t WHERE t.job = the_job ORDER BY t.id FOR UPDATE;
    PERFORM FROM headrace.job_counts c WHERE c.job = the_job FOR UPDATE;
    PERFORM FROM headrace.jobs j WHERE j.id = the_job AND j.state NOT IN ('pending', 'running');
    IF NOT FOUND THEN
        RETURN 0;
    END IF;
    PERFORM headrace.fold_additions_v1(the_job);
    gone := headrace.end_tasks_v1(
        ARRAY(SELECT t.id FROM headrace.tasks t WHERE t.job = the_job AND t.worker IS NULL),
        'cancelled', 'job_cancelled', NULL, NULL);
    UPDATE headrace.job_counts c SET cancelled = c.cancelled + cardinality(gone) WHERE c.job = the_job;
    PERFORM headrace.free_v1(gone);
    RETURN cardinality(gone);
END
$function$;
