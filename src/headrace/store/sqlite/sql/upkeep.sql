-- name: expired_tasks
-- Its index holds only pending tasks that can expire.
SELECT t.id, t.claim_no, t.state, t.reason, t.run_no, t.attempt, t.losses, t.lane, t.job, t.critical, t.gates,
    t.keyed, t.queue, t.eligible_at, t.order_at, t.expires_at, t.claimed_at, t.started_at
FROM headrace_tasks AS t
WHERE t.expires_at IS NOT NULL AND t.state = 'pending' AND t.expires_at <= :now
ORDER BY t.expires_at LIMIT :limit

-- name: ready_depth
-- Counts an index range and stops at the cap. The pools are named so that the range is one per pool, and the index
-- because after ANALYZE of a large backlog in one queue SQLite would rather scan the table.
SELECT count(*) FROM (
    SELECT 1 FROM headrace_tasks INDEXED BY headrace_tasks_ready
    WHERE state = 'pending' AND ready_at IS NOT NULL AND queue = :queue
        AND pool IN ('coroutine', 'child', 'thread', 'command', 'runner') AND lane = :lane
    LIMIT :cap
)

-- name: dead_letter_depth
-- Counts in the index that holds nothing else, and stops at the cap.
SELECT count(*) FROM (
    SELECT 1 FROM headrace_history INDEXED BY headrace_history_dead WHERE dead_letter AND state = 'failed' LIMIT :cap
)

-- name: count_outcome
-- Written by the worker it names, and by whoever settles what it left.
INSERT INTO headrace_outcomes (worker, queue, name, minute, outcome, n)
VALUES (:worker, :queue, :name, :minute, :outcome, :n)
ON CONFLICT (worker, queue, name, minute, outcome) DO UPDATE SET n = n + excluded.n

-- name: lead
-- A lease row: free when it expired, renewed by its holder.
INSERT INTO headrace_leaders (role, worker, expires_at) VALUES (:role, :worker, :expires_at)
ON CONFLICT (role) DO UPDATE SET worker = excluded.worker, expires_at = excluded.expires_at
WHERE worker = excluded.worker OR expires_at <= :now

-- name: old_history
-- Of one state, before an instant. The tasks of a job stay until the job is as old as they are: its fate and its retry ask
-- for them. What an unfinished task waits for, or waited for, stays as well.
SELECT h.finished_at, h.id FROM headrace_history AS h INDEXED BY headrace_history_state
WHERE h.state = :state AND h.finished_at < :before
    AND NOT EXISTS (
        SELECT 1 FROM headrace_jobs AS j
        WHERE j.id = h.job AND (j.completed_at IS NULL OR j.completed_at >= :until)
    )
    AND NOT EXISTS (
        SELECT 1 FROM headrace_dependencies AS d JOIN headrace_tasks AS t ON t.id = d.task WHERE d.upstream = h.id
    )
ORDER BY h.finished_at, h.id LIMIT :limit

-- name: note_pruned_jobs
-- A job's tasks go batch by batch: its counters know of more than history has.
INSERT INTO headrace_meta (key, value)
SELECT DISTINCT 'pruned job ' || h.job, 'some of its tasks' FROM headrace_history AS h
WHERE h.job IS NOT NULL AND h.id IN (SELECT value FROM json_each(?))
ON CONFLICT (key) DO NOTHING

-- name: drop_pruned_notes
-- With the job.
DELETE FROM headrace_meta WHERE key IN (SELECT 'pruned job ' || value FROM json_each(?))

-- name: dead_letters
-- Of these ids. One whose job is not over stays: the job's fate and its retry ask for it. So does one that an unfinished
-- task waited for.
SELECT h.id FROM headrace_history AS h
WHERE h.id IN (SELECT value FROM json_each(?)) AND h.dead_letter AND h.state = 'failed'
    AND NOT EXISTS (SELECT 1 FROM headrace_jobs AS j WHERE j.id = h.job AND j.completed_at IS NULL)
    AND NOT EXISTS (
        SELECT 1 FROM headrace_dependencies AS d JOIN headrace_tasks AS t ON t.id = d.task WHERE d.upstream = h.id
    )
ORDER BY h.id

-- name: prune_history
-- With everything that is keyed by the task.
DELETE FROM headrace_history WHERE id IN (SELECT value FROM json_each(?))

-- name: prune_attempts
-- By the primary key's first column.
DELETE FROM headrace_attempts WHERE task IN (SELECT value FROM json_each(?))

-- name: prune_logs
-- By the primary key's first column.
DELETE FROM headrace_logs WHERE task IN (SELECT value FROM json_each(?))

-- name: prune_checkpoints
-- By the primary key's first column.
DELETE FROM headrace_checkpoints WHERE task IN (SELECT value FROM json_each(?))

-- name: prune_waits
-- By the primary key's first column.
DELETE FROM headrace_waits WHERE task IN (SELECT value FROM json_each(?))

-- name: prune_edges
-- By the primary key's first column. Those that lead to these go with the tasks that had them.
DELETE FROM headrace_dependencies WHERE task IN (SELECT value FROM json_each(?))

-- name: prune_barriers
-- By the primary key.
DELETE FROM headrace_barriers WHERE task IN (SELECT value FROM json_each(?))

-- name: blobs_of_tasks
-- What their results refer to.
SELECT result_ref FROM headrace_history
WHERE id IN (SELECT value FROM json_each(?)) AND result_ref IS NOT NULL

-- name: prune_events
-- Oldest first.
DELETE FROM headrace_events WHERE id IN (
    SELECT e.id FROM headrace_events AS e INDEXED BY headrace_events_created
    WHERE e.created_at < :until ORDER BY e.created_at LIMIT :limit
)

-- name: prune_task_keys
-- The names kept for a manual retry; a key with a time of its own lives until then.
DELETE FROM headrace_keys WHERE coalesce(expires_at, 0) = 0 AND task IN (SELECT value FROM json_each(?))

-- name: expired_results
-- Not those of what an unfinished task waits for, or waited for: it may ask for them.
SELECT h.id, h.result_ref FROM headrace_history AS h INDEXED BY headrace_history_results
WHERE h.result_expires_at IS NOT NULL AND h.result_expires_at <= :now AND NOT EXISTS (
    SELECT 1 FROM headrace_dependencies AS d JOIN headrace_tasks AS t ON t.id = d.task WHERE d.upstream = h.id
)
ORDER BY h.result_expires_at LIMIT :limit

-- name: prune_results
-- The row says that there was one.
UPDATE headrace_history SET result = NULL, result_ref = NULL, result_expires_at = NULL, result_expired = 1
WHERE id IN (SELECT value FROM json_each(?))

-- name: prune_keys
-- Past their time, and nobody took them over. At 0 stand the names kept for a manual retry.
DELETE FROM headrace_keys
WHERE (scope, key) IN (
    SELECT scope, key FROM headrace_keys WHERE expires_at IS NOT NULL AND expires_at > 0 AND expires_at <= :now
    ORDER BY expires_at LIMIT :limit
)

-- name: prune_workers
-- Only those that hold nothing.
DELETE FROM headrace_workers
WHERE id IN (
    SELECT w.id FROM headrace_workers AS w
    WHERE w.state = 'stopped' AND w.stopped_at < :until
        AND NOT EXISTS (SELECT 1 FROM headrace_tasks AS t WHERE t.worker = w.id)
    LIMIT :limit
)

-- name: old_jobs
-- Over, and none of their tasks is left.
SELECT j.id FROM headrace_jobs AS j
WHERE j.state IN ('completed', 'failed', 'cancelled') AND j.completed_at < :until
    AND NOT EXISTS (SELECT 1 FROM headrace_history AS h WHERE h.job = j.id)
    AND NOT EXISTS (SELECT 1 FROM headrace_tasks AS t WHERE t.job = j.id)
    AND NOT EXISTS (SELECT 1 FROM headrace_job_additions AS a WHERE a.job = j.id)
LIMIT :limit

-- name: emptied_jobs
-- Of the same, those whose events are gone, too.
SELECT j.id FROM headrace_jobs AS j
WHERE j.state IN ('completed', 'failed', 'cancelled') AND j.completed_at < :until
    AND NOT EXISTS (SELECT 1 FROM headrace_history AS h WHERE h.job = j.id)
    AND NOT EXISTS (SELECT 1 FROM headrace_tasks AS t WHERE t.job = j.id)
    AND NOT EXISTS (SELECT 1 FROM headrace_job_additions AS a WHERE a.job = j.id)
    AND NOT EXISTS (SELECT 1 FROM headrace_job_events AS e WHERE e.job = j.id)
LIMIT :limit

-- name: prune_jobs
-- The job's row.
DELETE FROM headrace_jobs WHERE id IN (SELECT value FROM json_each(?))

-- name: prune_job_counts
-- And its counters.
DELETE FROM headrace_job_counts WHERE job IN (SELECT value FROM json_each(?))

-- name: prune_job_events
-- What they were, some at a time; the oldest first, so that what is left has no gap and tells how the job ended.
DELETE FROM headrace_job_events
WHERE (job, seq) IN (
    SELECT job, seq FROM headrace_job_events WHERE job IN (SELECT value FROM json_each(:jobs))
    ORDER BY job, seq LIMIT :limit
)

-- name: prune_job_lines
-- Where its lines stood.
DELETE FROM headrace_job_lines WHERE job IN (SELECT value FROM json_each(?))

-- name: prune_outcomes
-- Counts are kept as long as the history they sum up.
DELETE FROM headrace_outcomes WHERE minute < ?

-- name: prune_gates
-- Buckets that have long been full: a new one would be no different.
DELETE FROM headrace_gates WHERE key IN (SELECT key FROM headrace_gates WHERE full_at < :until ORDER BY full_at LIMIT :limit)

-- name: prune_tokens
-- Those that nobody could use for so long.
DELETE FROM headrace_tokens WHERE id IN (
    SELECT id FROM headrace_tokens WHERE expires_at < :until OR revoked_at < :until LIMIT :limit
)

-- name: prune_audit
-- Oldest first: ids rise with the time.
DELETE FROM headrace_audit WHERE id IN (
    SELECT old.id FROM (SELECT id, at FROM headrace_audit ORDER BY id LIMIT :limit) AS old WHERE old.at < :until
)

-- name: prunable
-- What all calls of prune together would remove: the same conditions as theirs.
SELECT
    (
        SELECT count(*) FROM headrace_history AS h
        WHERE h.finished_at < :until AND NOT EXISTS (
            SELECT 1 FROM headrace_jobs AS j
            WHERE j.id = h.job AND (j.completed_at IS NULL OR j.completed_at >= :until)
        ) AND NOT EXISTS (
            SELECT 1 FROM headrace_dependencies AS d JOIN headrace_tasks AS t ON t.id = d.task WHERE d.upstream = h.id
        )
    ),
    (
        SELECT count(*) FROM headrace_history AS h
        WHERE h.result_expires_at IS NOT NULL AND h.result_expires_at <= :now AND h.finished_at >= :until
            AND NOT EXISTS (
                SELECT 1 FROM headrace_dependencies AS d JOIN headrace_tasks AS t ON t.id = d.task
                WHERE d.upstream = h.id
            )
    ),
    (
        SELECT count(*) FROM headrace_workers AS w
        WHERE w.state = 'stopped' AND w.stopped_at < :until
            AND NOT EXISTS (SELECT 1 FROM headrace_tasks AS t WHERE t.worker = w.id)
    ),
    (SELECT count(*) FROM headrace_keys WHERE expires_at IS NOT NULL AND expires_at > 0 AND expires_at <= :now),
    (
        SELECT count(*) FROM headrace_jobs AS j
        WHERE j.state IN ('completed', 'failed', 'cancelled') AND j.completed_at < :until
            AND NOT EXISTS (SELECT 1 FROM headrace_history AS h WHERE h.job = j.id AND h.finished_at >= :until)
            AND NOT EXISTS (SELECT 1 FROM headrace_tasks AS t WHERE t.job = j.id)
            AND NOT EXISTS (SELECT 1 FROM headrace_job_additions AS a WHERE a.job = j.id)
    ),
    (SELECT count(*) FROM headrace_events WHERE created_at < :until),
    (SELECT count(*) FROM headrace_tokens WHERE expires_at < :until OR revoked_at < :until),
    (SELECT count(*) FROM headrace_audit WHERE at < :audited)
