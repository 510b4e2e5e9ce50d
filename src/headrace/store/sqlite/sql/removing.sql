-- name: ended_with_jobs
-- Of these ids the tasks that ended, each with whether its job is not over: the job's fate and its retry ask for it.
SELECT h.id, EXISTS (SELECT 1 FROM headrace_jobs AS j WHERE j.id = h.job AND j.completed_at IS NULL)
FROM headrace_history AS h WHERE h.id IN (SELECT value FROM json_each(?))

-- name: live_waiters
-- Who has not ended and waits for these, or called them.
SELECT d.upstream, d.task FROM headrace_dependencies AS d JOIN headrace_tasks AS t ON t.id = d.task
WHERE d.upstream IN (SELECT value FROM json_each(?))

-- name: drop_all_keys
-- Also those with a time of their own: whoever enqueues the same again makes a new task.
DELETE FROM headrace_keys WHERE task IN (SELECT value FROM json_each(?))
