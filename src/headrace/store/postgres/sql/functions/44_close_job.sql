-- Ends a job from outside (cancelled, or past its deadline) with everything in it; false when it was over already.
CREATE OR REPLACE FUNCTION headrace.close_job_v1(the_job bigint, new_state text, new_reason text)
RETURNS boolean
LANGUAGE plpgsql
SET enable_seqscan = off
AS $function$
DECLARE
    gone bigint[];
BEGIN
    -- Tasks, then counters, then the job: the order in which finishers lock.
    PERFORM FROM headrace.tasks t WHERE t.job = the_job ORDER BY t.id FOR UPDATE;
    PERFORM FROM headrace.job_counts c WHERE c.job = the_job FOR UPDATE;
    PERFORM FROM headrace.jobs j WHERE j.id = the_job AND j.state IN ('pending', 'running');
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    UPDATE headrace.job_counts c SET seq = c.seq + 1 WHERE c.job = the_job;
    PERFORM headrace.fold_additions_v1(the_job);
    gone := headrace.end_job_v1(the_job, new_state, new_reason);
    PERFORM headrace.advance_awaited_v1(gone);
    PERFORM headrace.free_v1(gone);
    PERFORM headrace.note_job_v1(ARRAY[the_job]);
    PERFORM pg_notify('headrace_live', 'job/' || the_job);
    RETURN true;
END
$function$;
