-- name: reopen
-- A new run of ended tasks.
SELECT headrace.reopen_v1($1);

-- name: clear
-- A new run of a task and of everything below it.
SELECT headrace.clear_v1($1);

-- name: failed_of_job
-- What a retry of the whole job runs again: the failed, and those that ended only because the job did.
SELECT h.id FROM headrace.history h
WHERE h.job = $1 AND (
    h.state = 'failed'
    OR h.state = 'cancelled' AND (h.reason IN ('upstream_failed', 'job_failed', 'job_cancelled', 'job_timeout') OR $2::boolean)
) IS TRUE
ORDER BY h.id;
