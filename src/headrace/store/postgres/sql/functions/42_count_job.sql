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
    added bigint;
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
    ELSIF broken THEN
        RETURN headrace.end_job_v1(the_job, 'failed', 'error');
    ELSIF counts.completed + counts.failed + counts.cancelled < counts.total THEN
        RETURN '{}';
    END IF;
    PERFORM FROM headrace.jobs j WHERE j.id = the_job AND j.state IN ('pending', 'running');
    IF NOT FOUND THEN
        -- It was over before: what users' transactions added since is left for `expire`, which finds it by its note.
        RETURN '{}';
    END IF;
    added := headrace.fold_additions_v1(the_job);
    IF counts.completed + counts.failed + counts.cancelled < counts.total + added THEN
        RETURN '{}';
    ELSIF counts.failed + counts.cancelled > 0 AND EXISTS (
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
    ELSIF counts.cancelled = counts.total + added THEN
        RETURN headrace.end_job_v1(the_job, 'cancelled', NULL);
    END IF;
    RETURN headrace.end_job_v1(the_job, 'completed', NULL);
END
$function$;
