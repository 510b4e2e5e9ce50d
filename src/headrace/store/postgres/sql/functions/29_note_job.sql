-- Writes down jobs as they are now, each under the number that its counters had before they were raised. Whoever changes
-- a job's state or counts raises `seq` once in the transaction and calls this last. The lock on the counters makes the
-- numbers of a job come without gaps, in the order of the commits.
CREATE OR REPLACE FUNCTION headrace.note_job_v1(jobs bigint[])
RETURNS void
LANGUAGE plpgsql
SET enable_seqscan = off
AS $function$
BEGIN
    INSERT INTO headrace.job_events (job, seq, at, state, total, completed, failed, cancelled)
    SELECT c.job, c.seq - 1, clock_timestamp(), j.state, c.total, c.completed, c.failed, c.cancelled
    FROM headrace.job_counts c JOIN headrace.jobs j ON j.id = c.job
    WHERE c.job = ANY (jobs);
END
$function$;
