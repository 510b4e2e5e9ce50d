-- name: send
-- Keeps an event and resumes those that wait for it.
SELECT headrace.send_v1($1, $2, $3, $4);

-- name: send_in_transaction
-- Keeps an event, in a transaction of the user's: `deliver` does the rest.
INSERT INTO headrace.events (id, name, key, payload, created_at)
VALUES (nextval('headrace.ids'), $1, $2, $3, clock_timestamp()) RETURNING id;

-- name: receive
-- What a wait has come to.
SELECT fate, value FROM headrace.receive_v1($1, $2, $3, $4, $5, $6, $7);

-- name: deliver
-- Resumes whose event came unheard, and whose wait is over.
SELECT resumed, reached FROM headrace.deliver_v1($1, $2);

-- name: suspending
-- Holds what tasks are about to wait for.
SELECT headrace.suspending_v1($1, $2, $3);

-- name: suspended
-- Writes down what tasks wait for.
SELECT headrace.suspended_v1($1, $2, $3);

-- name: prune_events
-- Removes events of long ago.
WITH old AS (
    SELECT e.id FROM headrace.events e
    WHERE e.created_at < (SELECT clock_timestamp() - make_interval(secs => $1::double precision))
    ORDER BY e.created_at LIMIT $2 FOR UPDATE SKIP LOCKED
)
DELETE FROM headrace.events e USING old WHERE e.id = old.id RETURNING e.id;

-- name: events
-- The last first, by the index on their time.
SELECT e.id, e.name, e.key, e.payload, e.created_at FROM headrace.events e
WHERE e.created_at <= $1::timestamptz AND (e.created_at, e.id) < ($1, $2::bigint)
ORDER BY e.created_at DESC, e.id DESC LIMIT $3::integer;

-- name: events_of_key
-- Those of one key of a name, by the index on both.
SELECT e.id, e.name, e.key, e.payload, e.created_at FROM headrace.events e
WHERE e.name = $4::text AND e.key = $5::text AND (e.created_at, e.id) < ($1::timestamptz, $2::bigint)
ORDER BY e.created_at DESC, e.id DESC LIMIT $3::integer;

-- name: skim_events
-- The last of all names, by the index on their time; what they hold only of the one that is looked for.
SELECT e.id, e.name, e.key, CASE WHEN e.name = $4::text THEN e.payload END AS payload, e.created_at
FROM headrace.events e
WHERE e.created_at <= $1::timestamptz AND (e.created_at, e.id) < ($1, $2::bigint)
ORDER BY e.created_at DESC, e.id DESC LIMIT $3::integer;
