-- Gives a job its end, once per run: state, hook, and unless it completed the end of what is still open. The caller
-- holds the job's counters (and its tasks, where they must end). Returns the tasks that ended with it.
CREATE OR REPLACE FUNCTION headrace.end_job_v1(the_job bigint, new_state text, new_reason text)
RETURNS bigint[]
LANGUAGE plpgsql
SET enable_seqscan = off
AS $function$
DECLARE
    job record;
    hook jsonb;
    told integer;
    task_reason CONSTANT text := CASE
        WHEN new_reason = 'job_timeout' THEN 'job_timeout' WHEN new_state = 'failed' THEN 'job_failed' ELSE 'job_cancelled' END;
    gone bigint[] := '{}';
BEGIN
    SELECT * INTO job FROM headrace.jobs j WHERE j.id = the_job AND j.state IN ('pending', 'running') FOR UPDATE;
    IF NOT FOUND THEN
        RETURN gone;
    END IF;
    IF new_state <> 'completed' THEN
        gone := headrace.end_tasks_v1(
            ARRAY(SELECT t.id FROM headrace.tasks t WHERE t.job = the_job AND t.worker IS NULL ORDER BY t.id FOR UPDATE),
            'cancelled', task_reason, NULL, NULL
        );
        UPDATE headrace.job_counts c SET cancelled = c.cancelled + cardinality(gone) WHERE c.job = the_job;
        WITH stopped AS (
            UPDATE headrace.tasks t SET state = 'cancelling', cancelling_at = clock_timestamp(), reason = task_reason
            WHERE t.job = the_job AND t.state IN ('claimed', 'running', 'paused') RETURNING t.worker
        )
        SELECT count(pg_notify('headrace_cancel', w.worker)) INTO told FROM (SELECT DISTINCT worker FROM stopped) AS w;
    END IF;
    UPDATE headrace.jobs j
    SET state = new_state, reason = new_reason, completed_at = clock_timestamp(), hooked_run = j.run_no
    WHERE j.id = the_job;
    hook := CASE WHEN new_state = 'completed' THEN job.on_success ELSE job.on_failure END::jsonb;
    IF hook IS NOT NULL AND job.hooked_run < job.run_no THEN
        PERFORM headrace.enqueue_stored_v1(hook, true);
    END IF;
    PERFORM headrace.publish_v1(
        'job.' || new_state, the_job::text,
        json_build_object('job', the_job, 'name', job.name, 'state', new_state)::text, true);
    RETURN gone;
END
$function$;
