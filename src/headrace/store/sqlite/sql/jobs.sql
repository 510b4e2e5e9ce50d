-- name: count_job
-- Sums of one batch; the number of the change comes from the update that locks the row.
UPDATE headrace_job_counts
SET completed = completed + :completed, failed = failed + :failed, cancelled = cancelled + :cancelled
WHERE job = :job
RETURNING total, completed, failed, cancelled

-- name: additions
-- What users' transactions added to the job and nobody has counted yet.
SELECT coalesce(sum(n), 0) FROM headrace_job_additions WHERE job = ?

-- name: fold_additions
-- Count them.
UPDATE headrace_job_counts SET total = total + :n WHERE job = :job

-- name: drop_additions
-- And forget the notes.
DELETE FROM headrace_job_additions WHERE job = ?

-- name: job_row
-- What its completion needs.
SELECT state, run_no, on_success, on_failure, started_at FROM headrace_jobs WHERE id = ?

-- name: end_job
-- Once: a job that is over stays as it is.
UPDATE headrace_jobs SET state = :state, reason = :reason, completed_at = :now
WHERE id = :job AND state IN ('pending', 'running')

-- name: take_hook
-- Exactly one hook for each run of the job.
UPDATE headrace_jobs SET hooked_run = run_no WHERE id = ? AND hooked_run < run_no

-- name: critical_failure
-- Only asked when something of the job failed. A failure whose handler has completed counts no more.
SELECT 1 FROM headrace_history AS h
WHERE h.job = ? AND h.state = 'failed' AND h.critical AND NOT EXISTS (
    SELECT 1 FROM headrace_dependencies AS d JOIN headrace_history AS handler ON handler.id = d.task
    WHERE d.upstream = h.id AND d.kind = 2 AND handler.state = 'completed'
)
LIMIT 1

-- name: critical_rejection
-- The same of what a person rejected, which is counted as cancelled. There are few of those.
SELECT 1 FROM headrace_jobs AS j
CROSS JOIN headrace_history AS h INDEXED BY headrace_history_state
    ON h.state = 'rejected' AND h.finished_at >= j.created_at AND h.job = j.id
WHERE j.id = ? AND h.critical AND NOT EXISTS (
    SELECT 1 FROM headrace_dependencies AS d JOIN headrace_history AS handler ON handler.id = d.task
    WHERE d.upstream = h.id AND d.kind = 2 AND handler.state = 'completed'
)
LIMIT 1

-- name: open_tasks_of_job
-- What is left of a job that ended.
SELECT t.id, t.claim_no, t.state, t.reason, t.run_no, t.attempt, t.losses, t.lane, t.job, t.critical, t.gates,
    t.keyed, t.queue, t.eligible_at, t.order_at, t.expires_at, t.claimed_at, t.started_at
FROM headrace_tasks AS t
WHERE t.job = ?

-- name: mark_cancelling
-- Its worker is told to stop it; the fence stays.
UPDATE headrace_tasks SET state = 'cancelling', reason = :reason, cancelling_at = :now
WHERE id IN (SELECT value FROM json_each(:ids)) AND state IN ('claimed', 'running', 'paused')

-- name: insert_job
-- Its counters are a narrow row of their own. The deadline counts from here until the first claim sets it anew.
INSERT INTO headrace_jobs (
    id, name, description, timeout, created_at, deadline_at, on_success, on_failure, metadata, owner
)
VALUES (
    :job, :name, :description, :timeout, :now, :now + CAST(:timeout * 1000000 AS INTEGER), :on_success, :on_failure,
    :metadata, :owner
)

-- name: insert_job_counts
-- Starts at zero; the enqueue of its tasks raises it.
INSERT INTO headrace_job_counts (job) VALUES (?)

-- name: get_job
-- Total includes what users' transactions added.
SELECT j.id, j.name, j.description, j.state, j.reason, j.run_no, j.created_at, j.started_at, j.completed_at,
    j.deadline_at,
    c.total + (SELECT coalesce(sum(a.n), 0) FROM headrace_job_additions AS a WHERE a.job = j.id),
    c.completed, c.failed, c.cancelled,
    (
        SELECT count(*) FROM headrace_tasks AS t
        WHERE t.job = j.id AND t.state IN ('claimed', 'running', 'paused', 'cancelling')
    ),
    j.metadata, j.owner
FROM headrace_jobs AS j JOIN headrace_job_counts AS c ON c.job = j.id
WHERE j.id = ?

-- name: list_job_ids
-- Newest first. Ids are taken under the write lock, so they rise with the creation. NULL states: all.
SELECT id FROM headrace_jobs
WHERE (:states IS NULL OR state IN (SELECT value FROM json_each(:states))) AND (:before IS NULL OR id < :before)
ORDER BY id DESC LIMIT :limit

-- name: list_job_ids_of_owner
-- The same by the index on the owner.
SELECT id FROM headrace_jobs
WHERE owner = :owner AND (:states IS NULL OR state IN (SELECT value FROM json_each(:states)))
    AND (:before IS NULL OR id < :before)
ORDER BY id DESC LIMIT :limit

-- name: jobs_past_deadline
-- Their tasks are cancelled.
SELECT id FROM headrace_jobs
WHERE deadline_at IS NOT NULL AND state IN ('pending', 'running') AND deadline_at <= :now
ORDER BY deadline_at LIMIT :limit

-- name: late_additions
-- Jobs that ended before a user's transaction committed its addition.
SELECT DISTINCT j.id, j.state FROM headrace_job_additions AS a JOIN headrace_jobs AS j ON j.id = a.job
WHERE j.state IN ('completed', 'failed', 'cancelled')
LIMIT ?

-- name: reopen_job
-- A new run: the state, the deadline and the hook begin anew.
UPDATE headrace_jobs
SET state = 'pending', reason = NULL, run_no = run_no + 1, started_at = NULL, completed_at = NULL,
    deadline_at = :now + CAST(timeout * 1000000 AS INTEGER)
WHERE id = :job AND state IN ('completed', 'failed', 'cancelled')

-- name: tasks_to_rerun
-- What failed, and what was cancelled because of it or with the job; of a cancelled job all that somebody cancelled.
SELECT id FROM headrace_history
WHERE job = :job AND (
    state = 'failed'
    OR (state = 'cancelled' AND iif(
        :cancelled, reason IS NOT 'skipped', reason IN ('upstream_failed', 'job_failed', 'job_timeout')
    ))
)
ORDER BY id

-- name: stopping_task_of_job
-- One that was told to stop and is still in a worker's hands.
SELECT t.id FROM headrace_tasks AS t WHERE t.job = ? AND t.state = 'cancelling' ORDER BY t.id LIMIT 1
