-- name: expected_live
-- Of these ids the live tasks that are as they are expected, held still. A new run has an instant of its own.
SELECT t.id FROM headrace.tasks t
WHERE t.id = ANY ($1::bigint[]) AND t.state = ANY ($2::text[]) AND t.enqueued_at <= $3::timestamptz
ORDER BY t.id FOR UPDATE;

-- name: expected_ended
-- The same of those that ended. Somebody who replays one has taken it from here; when it ends again, it is later.
SELECT h.id FROM headrace.history h
WHERE h.id = ANY ($1::bigint[]) AND h.state = ANY ($2::text[]) AND h.finished_at <= $3::timestamptz
ORDER BY h.id FOR UPDATE;
