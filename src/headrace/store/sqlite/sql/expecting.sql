-- name: expected_live
-- Of these ids the live tasks that are as they are expected. A new run has an instant of its own.
SELECT t.id FROM headrace_tasks AS t
WHERE t.id IN (SELECT value FROM json_each(:ids)) AND t.state IN (SELECT value FROM json_each(:states))
    AND t.enqueued_at <= :until

-- name: expected_ended
-- The same of those that ended. Somebody who replays one has taken it from here; when it ends again, it is later.
SELECT h.id FROM headrace_history AS h
WHERE h.id IN (SELECT value FROM json_each(:ids)) AND h.state IN (SELECT value FROM json_each(:states))
    AND h.finished_at <= :until
