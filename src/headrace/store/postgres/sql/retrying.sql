-- name: reopen
-- A new run of ended tasks.
SELECT headrace.reopen_v1($1);

-- name: clear
-- A new run of a task and of everything below it.
SELECT headrace.clear_v1($1);

-- name: failed_of_job
-- What a retry of the whole job runs again: the failed, and those that ended only because of them or of the job; of a
-- cancelled job all that somebody cancelled.
SELECT h.id FROM headrace.history h
WHERE h.job = $1 AND (
    h.state = 'failed'
    OR h.state = 'cancelled' AND CASE WHEN $2::boolean THEN h.reason IS DISTINCT FROM 'skipped'
                                      ELSE h.reason IN ('upstream_failed', 'job_failed', 'job_timeout') END
) IS TRUE
ORDER BY h.id;

-- name: stopping_of_job
-- One that was told to stop and is still in a worker's hands.
SELECT t.id FROM headrace.tasks t WHERE t.job = $1 AND (t.state = 'cancelling') IS TRUE ORDER BY t.id LIMIT 1;
