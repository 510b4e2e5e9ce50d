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
        PERFORM headrace.enqueue_v1(jsonb_build_object(
            'own', true, 'notify', jsonb_build_array(hook ->> 'queue'), 'keyed', jsonb_array_length(hook -> 'keys') > 0,
            -- The stored form is that of store.hooks; gates go into the row as core.limits writes them.
            'tasks', jsonb_build_array(hook || jsonb_build_object(
                'job', NULL, 'keyed', jsonb_array_length(hook -> 'keys') > 0,
                -- There is nobody to be refused: a key that is held must not keep the job from ending.
                'keys', (SELECT coalesce(jsonb_agg(CASE WHEN k ->> 'on_conflict' = 'reject'
                                                        THEN k || '{"on_conflict": "return"}' ELSE k END), '[]')
                         FROM jsonb_array_elements(hook -> 'keys') AS k),
                'order_key', (SELECT g -> 'key' FROM jsonb_array_elements(hook -> 'gates') AS g WHERE g ->> 'kind' = 'order'),
                'gates', (SELECT jsonb_agg(jsonb_build_array(g -> 'kind', g -> 'key', g -> 'n', g -> 'per', g -> 'burst'))::text
                          FROM jsonb_array_elements(hook -> 'gates') AS g)
            ))
        )::text);
    END IF;
    RETURN gone;
END
$function$;
