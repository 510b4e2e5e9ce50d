-- A user's transaction added tasks to a job and committed after the job had ended: counts them, cancels those that nobody
-- holds and tells the holders of the others to stop. Returns how many it cancelled.
CREATE OR REPLACE FUNCTION headrace.drop_late_additions_v1(the_job bigint)
RETURNS integer
LANGUAGE plpgsql
SET enable_seqscan = off
AS $function$
DECLARE
    gone bigint[];
    fate text;
    told integer;
BEGIN
    -- Tasks, then counters, then the job: the order in which finishers lock.
    PERFORM FROM headrace.tasks t WHERE t.job = the_job ORDER BY t.id FOR UPDATE;
    PERFORM FROM headrace.job_counts c WHERE c.job = the_job FOR UPDATE;
    SELECT CASE j.state WHEN 'failed' THEN 'job_failed' ELSE 'job_cancelled' END INTO fate FROM headrace.jobs j
    WHERE j.id = the_job AND j.state NOT IN ('pending', 'running');
    IF NOT FOUND THEN
        RETURN 0;
    END IF;
    PERFORM headrace.fold_additions_v1(the_job);
    gone := headrace.end_tasks_v1(
        ARRAY(SELECT t.id FROM headrace.tasks t WHERE t.job = the_job AND t.worker IS NULL),
        'cancelled', fate, NULL, NULL);
    UPDATE headrace.job_counts c SET cancelled = c.cancelled + cardinality(gone), seq = c.seq + 1 WHERE c.job = the_job;
    WITH stopped AS (
        UPDATE headrace.tasks t SET state = 'cancelling', cancelling_at = clock_timestamp(), reason = fate
        WHERE t.job = the_job AND t.state IN ('claimed', 'running', 'paused') RETURNING t.worker
    )
    SELECT count(pg_notify('headrace_cancel', w.worker)) INTO told FROM (SELECT DISTINCT worker FROM stopped) AS w;
    PERFORM headrace.advance_awaited_v1(gone);
    PERFORM headrace.free_v1(gone);
    PERFORM headrace.note_job_v1(ARRAY[the_job]);
    PERFORM pg_notify('headrace_live', 'job/' || the_job);
    RETURN cardinality(gone);
END
$function$;
