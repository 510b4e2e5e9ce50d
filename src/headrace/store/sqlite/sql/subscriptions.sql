-- name: subscriptions_of
-- The tasks that an event of this name enqueues: by their index.
SELECT task FROM headrace_subscriptions INDEXED BY headrace_subscriptions_event WHERE event = ? ORDER BY name

-- name: failure_subscriptions
-- Whether anybody wants to hear of failures.
SELECT 1 FROM headrace_subscriptions INDEXED BY headrace_subscriptions_event WHERE event = ? OR event = ? LIMIT 1

-- name: failures_to_tell
-- Of tasks that have failed, what is told; not of those that such an event enqueued.
SELECT id, name, queue, error_class, error_message, dead_letter FROM headrace_history
WHERE id IN (SELECT value FROM json_each(?)) AND coalesce(json_extract(options, '$.event'), '') NOT LIKE 'task.%'
ORDER BY id

-- name: subscriptions_declared
-- Those of these names, and whatever an app declared.
SELECT name, event, task, declared_by, changed_at FROM headrace_subscriptions
WHERE name IN (SELECT value FROM json_each(:names)) OR declared_by = :declared_by

-- name: all_subscriptions
-- By name.
SELECT name, event, task, declared_by, changed_at FROM headrace_subscriptions ORDER BY name

-- name: put_subscription
-- Makes it, or changes the one of that name.
INSERT INTO headrace_subscriptions (name, event, task, declared_by, changed_at)
VALUES (:name, :event, :task, :declared_by, :now)
ON CONFLICT (name) DO UPDATE SET event = excluded.event, task = excluded.task, changed_at = excluded.changed_at

-- name: remove_subscriptions
-- By name.
DELETE FROM headrace_subscriptions WHERE name IN (SELECT value FROM json_each(?))

-- name: name_of_job
-- What an event of its end says.
SELECT name FROM headrace_jobs WHERE id = ?
