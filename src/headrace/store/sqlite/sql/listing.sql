-- name: list_live
-- Newest first: ids are taken under the write lock, so they rise with the creation, and the table is in their order.
SELECT id, created_at FROM headrace_tasks
WHERE (:states IS NULL OR state IN (SELECT value FROM json_each(:states)))
    AND (:queues IS NULL OR queue IN (SELECT value FROM json_each(:queues)))
    AND (:names IS NULL OR name IN (SELECT value FROM json_each(:names)))
    AND (:job IS NULL OR job = :job) AND (:worker IS NULL OR worker = :worker)
    AND (:at IS NULL OR (created_at, id) < (:at, :id))
ORDER BY id DESC LIMIT :limit

-- name: list_live_of_job
-- By the index on the job.
SELECT id, created_at FROM headrace_tasks
WHERE job = :job
    AND (:states IS NULL OR state IN (SELECT value FROM json_each(:states)))
    AND (:queues IS NULL OR queue IN (SELECT value FROM json_each(:queues)))
    AND (:names IS NULL OR name IN (SELECT value FROM json_each(:names)))
    AND (:worker IS NULL OR worker = :worker) AND (:owner IS NULL OR owner = :owner)
    AND (:at IS NULL OR (created_at, id) < (:at, :id))
ORDER BY id DESC LIMIT :limit

-- name: list_live_of_owner
-- By the index on the owner, which is in the order of ids as well.
SELECT id, created_at FROM headrace_tasks INDEXED BY headrace_tasks_owner
WHERE owner = :owner
    AND (:states IS NULL OR state IN (SELECT value FROM json_each(:states)))
    AND (:queues IS NULL OR queue IN (SELECT value FROM json_each(:queues)))
    AND (:names IS NULL OR name IN (SELECT value FROM json_each(:names)))
    AND (:worker IS NULL OR worker = :worker)
    AND (:at IS NULL OR (created_at, id) < (:at, :id))
ORDER BY id DESC LIMIT :limit

-- name: list_done_by_state
-- One state, latest end first. The row is read only when a worker is asked for, or whether it is a dead letter.
SELECT id, finished_at FROM headrace_history INDEXED BY headrace_history_state
WHERE state = :state AND (finished_at, id) < (:before_at, :before_id)
    AND finished_at >= :since
    AND (:worker IS NULL OR worker = :worker) AND (:dead IS NULL OR (state = 'failed' AND dead_letter) = :dead)
ORDER BY finished_at DESC, id DESC LIMIT :limit

-- name: list_done_by_name
-- One state of one task name in one queue.
SELECT id, finished_at FROM headrace_history INDEXED BY headrace_history_queue_name
WHERE queue = :queue AND name = :name AND state = :state AND (finished_at, id) < (:before_at, :before_id)
    AND finished_at >= :since
    AND (:worker IS NULL OR worker = :worker) AND (:dead IS NULL OR (state = 'failed' AND dead_letter) = :dead)
ORDER BY finished_at DESC, id DESC LIMIT :limit

-- name: done_queues
-- From one queue to the next over the index, however many tasks ended in each.
WITH RECURSIVE done (queue) AS (
    SELECT min(h.queue) FROM headrace_history AS h INDEXED BY headrace_history_queue_name
    UNION ALL
    SELECT (
        SELECT min(h.queue) FROM headrace_history AS h INDEXED BY headrace_history_queue_name
        WHERE h.queue > done.queue
    )
    FROM done WHERE done.queue IS NOT NULL
)
SELECT queue FROM done WHERE queue IS NOT NULL

-- name: done_names
-- From one name to the next within a queue.
WITH RECURSIVE done (name) AS (
    SELECT min(h.name) FROM headrace_history AS h INDEXED BY headrace_history_queue_name WHERE h.queue = :queue
    UNION ALL
    SELECT (
        SELECT min(h.name) FROM headrace_history AS h INDEXED BY headrace_history_queue_name
        WHERE h.queue = :queue AND h.name > done.name
    )
    FROM done WHERE done.name IS NOT NULL
)
SELECT name FROM done WHERE name IS NOT NULL

-- name: list_done_of_job
-- A job's tasks are few against all of history.
SELECT id, finished_at FROM headrace_history
WHERE job = :job AND (finished_at, id) < (:before_at, :before_id)
    AND (:states IS NULL OR state IN (SELECT value FROM json_each(:states)))
    AND (:queues IS NULL OR queue IN (SELECT value FROM json_each(:queues)))
    AND (:names IS NULL OR name IN (SELECT value FROM json_each(:names)))
    AND (:worker IS NULL OR worker = :worker) AND (:dead IS NULL OR (state = 'failed' AND dead_letter) = :dead)
    AND (:owner IS NULL OR owner = :owner)
ORDER BY finished_at DESC, id DESC LIMIT :limit

-- name: list_done_of_owner
-- Theirs, latest end first, whatever the others did.
SELECT id, finished_at FROM headrace_history INDEXED BY headrace_history_owner
WHERE owner = :owner AND (finished_at, id) < (:before_at, :before_id)
    AND finished_at >= :since
    AND (:states IS NULL OR state IN (SELECT value FROM json_each(:states)))
    AND (:queues IS NULL OR queue IN (SELECT value FROM json_each(:queues)))
    AND (:names IS NULL OR name IN (SELECT value FROM json_each(:names)))
    AND (:worker IS NULL OR worker = :worker) AND (:dead IS NULL OR (state = 'failed' AND dead_letter) = :dead)
ORDER BY finished_at DESC, id DESC LIMIT :limit

-- name: list_dead_letters
-- Its partial index holds nothing else; named, because the one on all failures looks as good to SQLite.
SELECT id, finished_at FROM headrace_history INDEXED BY headrace_history_dead
WHERE dead_letter AND state = 'failed' AND (finished_at, id) < (:before_at, :before_id)
    AND (:states IS NULL OR state IN (SELECT value FROM json_each(:states)))
    AND (:queues IS NULL OR queue IN (SELECT value FROM json_each(:queues)))
    AND (:names IS NULL OR name IN (SELECT value FROM json_each(:names)))
    AND (:worker IS NULL OR worker = :worker) AND (:owner IS NULL OR owner = :owner)
ORDER BY finished_at DESC, id DESC LIMIT :limit
