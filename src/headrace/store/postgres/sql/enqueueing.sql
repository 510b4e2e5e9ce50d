-- name: enqueue
-- Tasks with keys, counters and wake-ups from one JSON text; the same statement in a user's transaction.
SELECT ordinal, id, created FROM headrace.enqueue_v1($1);

-- name: take_id_blocks
-- The first id of each of $1 blocks.
SELECT nextval('headrace.ids') FROM generate_series(1, $1::integer);

-- name: notify
-- Wakes the listeners of these queues.
SELECT pg_notify('headrace', queue) FROM unnest($1::text[]) AS queue;
