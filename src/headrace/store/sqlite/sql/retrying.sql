-- name: make_reopened
-- Those that open a new run in this transaction; with `clear`, also those below that have not ended.
CREATE TEMP TABLE IF NOT EXISTS headrace_reopened (id INTEGER PRIMARY KEY)

-- name: clear_reopened
-- Of the call before, or of one that was undone.
DELETE FROM temp.headrace_reopened

-- name: note_reopened
-- What a person may run again.
INSERT INTO temp.headrace_reopened (id)
SELECT id FROM headrace_history
WHERE id IN (SELECT value FROM json_each(?)) AND state IN ('completed', 'failed', 'cancelled')

-- name: note_cleared
-- The task and everything below it, whatever became of that.
INSERT INTO temp.headrace_reopened (id)
WITH RECURSIVE below (id) AS (
    SELECT ?
    UNION
    SELECT d.task FROM below CROSS JOIN headrace_dependencies AS d ON d.upstream = below.id
)
SELECT below.id FROM below
WHERE EXISTS (SELECT 1 FROM headrace_tasks AS t WHERE t.id = below.id)
    OR EXISTS (SELECT 1 FROM headrace_history AS h WHERE h.id = below.id)

-- name: note_taken_down
-- What was cancelled because of them, down the graph in one statement.
INSERT OR IGNORE INTO temp.headrace_reopened (id)
WITH RECURSIVE below (id) AS (
    SELECT again.id FROM temp.headrace_reopened AS again
    UNION
    SELECT d.task
    FROM below
    CROSS JOIN headrace_dependencies AS d ON d.upstream = below.id
    CROSS JOIN headrace_history AS h ON h.id = d.task
    WHERE h.state = 'cancelled' AND h.reason IN ('upstream_failed', 'skipped')
)
SELECT below.id FROM below

-- name: drop_impossible
-- What needs another that ended the other way and stays as it is can never run: it stays as well, and so does what needs
-- it. One that has run was allowed to, and is again.
DELETE FROM temp.headrace_reopened WHERE id IN (
    WITH RECURSIVE lost (id) AS (
        SELECT again.id
        FROM temp.headrace_reopened AS again
        CROSS JOIN headrace_history AS own ON own.id = again.id
        CROSS JOIN headrace_dependencies AS d ON d.task = again.id
        CROSS JOIN headrace_history AS h ON h.id = d.upstream
        WHERE own.state = 'cancelled'
            AND ((d.kind = 0 AND h.state <> 'completed') OR (d.kind = 2 AND h.state NOT IN ('failed', 'rejected')))
            AND NOT EXISTS (SELECT 1 FROM temp.headrace_reopened AS beside WHERE beside.id = d.upstream)
        UNION
        SELECT d.task
        FROM lost
        CROSS JOIN headrace_dependencies AS d ON d.upstream = lost.id
        CROSS JOIN temp.headrace_reopened AS again ON again.id = d.task
        CROSS JOIN headrace_history AS own ON own.id = d.task
        WHERE d.kind <> 1 AND own.state = 'cancelled'
    )
    SELECT lost.id FROM lost
)

-- name: drop_reopened
-- Of these nothing changes.
DELETE FROM temp.headrace_reopened WHERE id IN (SELECT value FROM json_each(?))

-- name: reopened
-- In one text, see `claim`.
SELECT json_group_array(again.id) FROM (SELECT id FROM temp.headrace_reopened ORDER BY id) AS again

-- name: keyed_reopened
-- Whose keys must be free.
SELECT h.id FROM temp.headrace_reopened AS again CROSS JOIN headrace_history AS h ON h.id = again.id
WHERE h.keyed ORDER BY h.id

-- name: held_reopened
-- In a worker's hands.
SELECT t.id FROM temp.headrace_reopened AS again CROSS JOIN headrace_tasks AS t ON t.id = again.id
WHERE t.worker IS NOT NULL LIMIT 1

-- name: reopened_of_jobs
-- What their jobs counted.
SELECT h.job, sum(h.state = 'completed'), sum(h.state = 'failed'), sum(h.state IN ('cancelled', 'rejected'))
FROM temp.headrace_reopened AS again CROSS JOIN headrace_history AS h ON h.id = again.id
WHERE h.job IS NOT NULL GROUP BY h.job

-- name: blocked_keys
-- A unique key the task had that another task holds now.
SELECT 1 FROM headrace_keys AS mine JOIN headrace_keys AS other ON other.scope = 'unique' AND other.key = mine.key
WHERE mine.scope = 'ended:' || :task AND mine.task = :task AND other.task <> :task
    AND (other.expires_at IS NULL OR other.expires_at > :now)
LIMIT 1

-- name: retake_keys
-- Its unique keys are its own again; a window that had begun ends with the new run.
INSERT INTO headrace_keys (scope, key, task, ttl, expires_at)
SELECT 'unique', key, task, ttl, NULL FROM headrace_keys WHERE scope = 'ended:' || :task AND task = :task
ON CONFLICT (scope, key) DO UPDATE SET task = excluded.task, ttl = excluded.ttl, expires_at = NULL

-- name: drop_key_names
-- They stand as keys now.
DELETE FROM headrace_keys WHERE scope = 'ended:' || :task AND task = :task

-- name: rerun
-- The rows move back: a new run with a fresh budget, in the retry lane, its age counted from now. Whoever has edges is
-- blocked until they are counted. What nobody has decided yet waits for that again, and so does what a person rejected,
-- or approved where that is forgotten.
INSERT INTO headrace_tasks (
    id, name, kind, queue, pool, lane, priority, state, claim_no, attempt, losses, run_no, max_attempts, job, critical,
    dead_letter, arguments, codec, version, options, gates, order_key, keyed, max_age, created_at, enqueued_at,
    eligible_at, order_at, expires_at, ready_at, waiting_on, owner
)
SELECT
    own.id, own.name, own.kind, own.queue, own.pool, 1, own.priority,
    iif(own.linked, 'blocked', iif(own.asks, 'pending_approval', 'pending')),
    own.claim_no, 0, 0, own.run_no + 1, own.max_attempts, own.job, own.critical, own.dead_letter, own.arguments,
    own.codec, own.version, own.options, own.gates, own.order_key, own.keyed, own.max_age, own.created_at,
    max(:now, own.created_at), :now, CASE WHEN own.job IS NULL THEN :now ELSE own.order_at END,
    CASE WHEN NOT own.linked THEN :now + CAST(own.max_age * 1000000 AS INTEGER) END,
    CASE WHEN NOT own.linked AND NOT own.asks THEN :now END, CASE WHEN own.linked AND own.asks THEN 'approval' END,
    own.owner
FROM (
    SELECT h.*,
        EXISTS (SELECT 1 FROM headrace_dependencies AS d WHERE d.task = h.id) AS linked,
        EXISTS (SELECT 1 FROM headrace_waits AS w WHERE w.task = h.id AND w.step = 'approval' AND NOT w.over)
        OR h.state = 'rejected' OR (
            :forgets AND EXISTS (SELECT 1 FROM headrace_checkpoints AS c WHERE c.task = h.id AND c.name = 'approval')
        ) AS asks
    FROM temp.headrace_reopened AS again CROSS JOIN headrace_history AS h ON h.id = again.id
) AS own

-- name: keep_attempts
-- A plain success was told by the row that leaves history.
INSERT INTO headrace_attempts (
    task, claim_no, run_no, attempt, state, charged, worker, executor, claimed_at, started_at, finished_at, recorded_by
)
SELECT
    h.id, h.claim_no, h.run_no, h.attempt, 'succeeded', 1, h.worker, h.executor, h.claimed_at, h.started_at,
    h.finished_at, 'worker'
FROM temp.headrace_reopened AS again CROSS JOIN headrace_history AS h ON h.id = again.id
WHERE h.state = 'completed'
ON CONFLICT (task, claim_no) DO UPDATE SET
    run_no = excluded.run_no, attempt = excluded.attempt, state = excluded.state, charged = excluded.charged,
    worker = excluded.worker, executor = excluded.executor, claimed_at = excluded.claimed_at,
    started_at = excluded.started_at, finished_at = excluded.finished_at, recorded_by = excluded.recorded_by
WHERE state = 'refused'

-- name: asked_again
-- Their rows say so now.
DELETE FROM headrace_waits WHERE step = 'approval' AND NOT over AND task IN (SELECT id FROM temp.headrace_reopened)

-- name: leave_history
-- The other half of the move.
DELETE FROM headrace_history WHERE id IN (SELECT id FROM temp.headrace_reopened)

-- name: begin_anew
-- Those below that had not ended, too: events of before are not for them.
UPDATE headrace_tasks SET enqueued_at = max(:now, created_at) WHERE id IN (SELECT id FROM temp.headrace_reopened)

-- name: ask_anew
-- Of these, whoever was approved: that is forgotten.
UPDATE headrace_tasks SET state = 'blocked', ready_at = NULL, waiting_on = 'approval'
WHERE id IN (SELECT id FROM temp.headrace_reopened) AND state IN ('pending', 'blocked')
    AND EXISTS (SELECT 1 FROM headrace_checkpoints AS c WHERE c.task = headrace_tasks.id AND c.name = 'approval')

-- name: forget_checkpoints
-- Of a task that begins anew.
DELETE FROM headrace_checkpoints WHERE task IN (SELECT id FROM temp.headrace_reopened)

-- name: forget_waits
-- The same.
DELETE FROM headrace_waits WHERE task IN (SELECT id FROM temp.headrace_reopened)

-- name: forget_events_of_cleared
-- Whoever waited for one begins anew.
UPDATE headrace_tasks SET waiting_on = NULL
WHERE id IN (SELECT id FROM temp.headrace_reopened) AND state = 'blocked' AND waiting_on > 'event:'

-- name: stop_releases
-- Their dependents are counted anew.
DELETE FROM headrace_releases WHERE upstream IN (SELECT id FROM temp.headrace_reopened)

-- name: note_recounted
-- Who has edges among those that opened again, and whoever else waits for one of these and is in nobody's hands.
INSERT OR IGNORE INTO temp.headrace_lowered (task, n)
SELECT again.id, 0 FROM temp.headrace_reopened AS again
WHERE EXISTS (SELECT 1 FROM headrace_dependencies AS d WHERE d.task = again.id)
UNION
SELECT d.task, 0
FROM temp.headrace_reopened AS again
CROSS JOIN headrace_dependencies AS d ON d.upstream = again.id
CROSS JOIN headrace_tasks AS t ON t.id = d.task
WHERE t.worker IS NULL

-- name: block_again
-- Those were free to run, and are no more. Whoever waits for an event has begun.
UPDATE headrace_tasks
SET state = 'blocked', ready_at = NULL, waiting_on = CASE state WHEN 'pending_approval' THEN 'approval' END
WHERE id IN (SELECT task FROM temp.headrace_lowered) AND state IN ('pending', 'pending_approval')

-- name: queues_of_reopened
-- Whom to wake. One text, see `claim`.
SELECT json_group_array(DISTINCT t.queue)
FROM temp.headrace_reopened AS again CROSS JOIN headrace_tasks AS t ON t.id = again.id
WHERE t.state = 'pending' AND t.ready_at IS NOT NULL

-- name: uncount_job
-- What is open again is no longer counted as ended.
UPDATE headrace_job_counts
SET completed = completed - :completed, failed = failed - :failed, cancelled = cancelled - :cancelled
WHERE job = :job
