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
    AND (:worker IS NULL OR worker = :worker)
    AND (:at IS NULL OR (created_at, id) < (:at, :id))
ORDER BY id DESC LIMIT :limit

-- name: list_done
-- Latest end first, over the index on (finished_at, id).
SELECT id, finished_at FROM headrace_history
WHERE (finished_at, id) < (:before_at, :before_id)
    AND (:states IS NULL OR state IN (SELECT value FROM json_each(:states)))
    AND (:queues IS NULL OR queue IN (SELECT value FROM json_each(:queues)))
    AND (:names IS NULL OR name IN (SELECT value FROM json_each(:names)))
    AND (:worker IS NULL OR worker = :worker) AND (:dead IS NULL OR (state = 'failed' AND dead_letter) = :dead)
ORDER BY finished_at DESC, id DESC LIMIT :limit

-- name: list_done_by_state
-- One state: its own index keeps the rare ones fast.
SELECT id, finished_at FROM headrace_history
WHERE state = :state AND (finished_at, id) < (:before_at, :before_id)
    AND (:queues IS NULL OR queue IN (SELECT value FROM json_each(:queues)))
    AND (:names IS NULL OR name IN (SELECT value FROM json_each(:names)))
    AND (:worker IS NULL OR worker = :worker) AND (:dead IS NULL OR (state = 'failed' AND dead_letter) = :dead)
ORDER BY finished_at DESC, id DESC LIMIT :limit

-- name: list_done_by_queue
-- One queue.
SELECT id, finished_at FROM headrace_history
WHERE queue = :queue AND (finished_at, id) < (:before_at, :before_id)
    AND (:states IS NULL OR state IN (SELECT value FROM json_each(:states)))
    AND (:names IS NULL OR name IN (SELECT value FROM json_each(:names)))
    AND (:worker IS NULL OR worker = :worker) AND (:dead IS NULL OR (state = 'failed' AND dead_letter) = :dead)
ORDER BY finished_at DESC, id DESC LIMIT :limit

-- name: list_done_by_name
-- One task name.
SELECT id, finished_at FROM headrace_history
WHERE name = :name AND (finished_at, id) < (:before_at, :before_id)
    AND (:states IS NULL OR state IN (SELECT value FROM json_each(:states)))
    AND (:queues IS NULL OR queue IN (SELECT value FROM json_each(:queues)))
    AND (:worker IS NULL OR worker = :worker) AND (:dead IS NULL OR (state = 'failed' AND dead_letter) = :dead)
ORDER BY finished_at DESC, id DESC LIMIT :limit

-- name: list_done_of_job
-- A job's tasks are few against all of history.
SELECT id, finished_at FROM headrace_history
WHERE job = :job AND (finished_at, id) < (:before_at, :before_id)
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
    AND (:worker IS NULL OR worker = :worker)
ORDER BY finished_at DESC, id DESC LIMIT :limit
