-- Adds ended tasks to a job's counters and ends the job when nothing is open, or at once when a critical task failed.
-- Returns the tasks that ended with it.
CREATE OR REPLACE FUNCTION headrace.count_job_v1(
    the_job bigint, more_completed bigint, more_failed bigint, more_cancelled bigint, broken boolean
)
RETURNS bigint[]
LANGUAGE plpgsql
SET enable_seqscan = off
AS $function$
DECLARE
    counts record;
    ended bigint[];
BEGIN
    IF broken THEN
        -- Before the counters: other finishers hold their tasks while they wait for the counters.
        PERFORM FROM headrace.tasks t WHERE t.job = the_job ORDER BY t.id FOR UPDATE;
    END IF;
    UPDATE headrace.job_counts c
    SET completed = c.completed + more_completed, failed = c.failed + more_failed,
        cancelled = c.cancelled + more_cancelled, seq = c.seq + 1
    WHERE c.job = the_job
    RETURNING c.total, c.completed, c.failed, c.cancelled INTO counts;
    IF NOT FOUND THEN
        RETURN '{}';
    END IF;
    ended := headrace.end_if_over_v1(the_job, broken, counts.total, counts.completed, counts.failed, counts.cancelled);
    PERFORM headrace.note_job_v1(ARRAY[the_job]);
    RETURN ended;
END
$function$;
