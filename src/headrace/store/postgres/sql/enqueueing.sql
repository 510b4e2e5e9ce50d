-- name: enqueue
-- Tasks with keys, counters and wake-ups from one JSON text; the same statement in a user's transaction.
SELECT ordinal, id, created FROM headrace.enqueue_v1($1);

-- name: take_id_blocks
-- The first id of each of $1 blocks, and how many enqueues have been repeated.
SELECT nextval('headrace.ids'), pg_sequence_last_value('headrace.repeats'::regclass) FROM generate_series(1, $1::integer);

-- name: notify
-- Wakes the listeners of these queues.
SELECT pg_notify('headrace', queue) FROM unnest($1::text[]) AS queue;

-- name: insert_plain
-- Tasks without keys and jobs, with new ids: the same rows as enqueue_v1 writes, at a quarter of its work. What many
-- tasks share is in one JSON text ($4), and each names its place in there ($3, empty where all share the first). $1 and
-- $3 are numbers with commas between them. A repeat goes through enqueue_v1; $6 is how many there had been.
WITH shared AS MATERIALIZED (
    SELECT
        s.*, instant.at AS now, instant.at + make_interval(secs => s.max_age) AS expires_at,
        coalesce(s.run_at, instant.at + make_interval(secs => greatest(s.delay, 0))) AS due
    -- LATERAL, so that the clock is read once.
    FROM (SELECT clock_timestamp() AS at) AS instant,
    LATERAL json_to_recordset(CASE WHEN instant.at IS NOT NULL THEN $4::text::json END) AS s(
        place integer, name text, kind text, queue text, pool text, priority integer, delay double precision,
        run_at timestamptz, max_attempts integer, max_age double precision, codec text, version integer, options text,
        gates text, order_key text, critical boolean, dead_letter boolean, approval boolean, owner text
    )
)
INSERT INTO headrace.tasks (
    id, name, kind, queue, pool, priority, state, max_attempts, critical, dead_letter, arguments, codec, version,
    options, gates, order_key, max_age, created_at, enqueued_at, eligible_at, order_at, expires_at, ready_at, owner
)
SELECT
    t.id, s.name, s.kind, s.queue, s.pool, s.priority,
    CASE WHEN s.approval THEN 'pending_approval' ELSE 'pending' END,
    s.max_attempts, s.critical, s.dead_letter, t.arguments, s.codec, s.version, s.options, s.gates, s.order_key,
    s.max_age, s.now, s.now, s.due, s.due, s.expires_at,
    CASE WHEN s.due <= s.now AND NOT s.approval THEN s.now END, s.owner
FROM shared AS s
JOIN unnest(
    string_to_array($1::text, ',')::bigint[], $2::text[], string_to_array($3::text, ',')::integer[]
) AS t(id, arguments, place) ON coalesce(t.place, 0) = s.place
-- No row, but the look that must follow the others: rows are inserted one by one as they come. (RETURNING and a look
-- from outside would cost 3 % of a bulk enqueue.) Most of the time there is nothing to do.
UNION ALL
SELECT
    NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL,
    NULL, NULL, NULL, NULL, NULL
WHERE CASE
    WHEN pg_sequence_last_value('headrace.repeats'::regclass) IS DISTINCT FROM $6::bigint OR $5::text[] <> '{}'
    THEN headrace.inserted_v1(split_part($1::text, ',', 1)::bigint, $6::bigint, $5::text[])
END;

-- name: insert_one
-- The same for one task, whose parts are parameters: half the work of a statement that expects many. $3 is how many
-- repeats there had been, $4 the queues to wake.
INSERT INTO headrace.tasks (
    id, name, kind, queue, pool, priority, state, max_attempts, critical, dead_letter, arguments, codec, version,
    options, gates, order_key, max_age, created_at, enqueued_at, eligible_at, order_at, expires_at, ready_at, owner
)
SELECT
    $1::bigint, $5, $6, $7, $8, $9, CASE WHEN $10::boolean THEN 'pending_approval' ELSE 'pending' END, $11, $12, $13,
    $2, $14, $15, $16, $17, $18, $19::double precision, instant.at, instant.at, due.at, due.at,
    instant.at + make_interval(secs => $19::double precision),
    CASE WHEN due.at <= instant.at AND NOT $10::boolean THEN instant.at END, $22
-- OFFSET, so that the clock is read once.
FROM (SELECT clock_timestamp() AS at OFFSET 0) AS instant,
LATERAL (
    SELECT coalesce($20::timestamptz, instant.at + make_interval(secs => greatest($21::double precision, 0))) AS at
) AS due
RETURNING CASE
    WHEN pg_sequence_last_value('headrace.repeats'::regclass) IS DISTINCT FROM $3::bigint OR $4::text[] <> '{}'
    THEN headrace.inserted_v1(id, $3::bigint, $4::text[])
END;

-- name: insert_handed
-- The same for one task without gates that is due at once: to a worker that stands by, if there is one, who is told of
-- it instead of the queue. Whether it was.
INSERT INTO headrace.tasks AS t (
    id, name, kind, queue, pool, priority, state, claim_no, worker, claimed_at, ready_at, max_attempts, critical,
    dead_letter, arguments, codec, version, options, max_age, created_at, enqueued_at, eligible_at, order_at, expires_at,
    owner
)
SELECT
    $1::bigint, $5, $6, $7::text, $8::text, $9::integer,
    CASE WHEN given.worker IS NULL THEN 'pending' ELSE 'claimed' END,
    CASE WHEN given.worker IS NULL THEN 0 ELSE 1 END,
    given.worker,
    CASE WHEN given.worker IS NOT NULL THEN instant.at END,
    CASE WHEN given.worker IS NULL THEN instant.at END,
    $10, $11, $12, $2, $13, $14, $15, $16::double precision, instant.at, instant.at, instant.at, instant.at,
    instant.at + make_interval(secs => $16::double precision), $17
-- OFFSET, so that one worker is taken and the clock is read once.
FROM (SELECT headrace.hand_over_v1($7::text, $8::text, $9::integer) AS worker OFFSET 0) AS given,
(SELECT clock_timestamp() AS at OFFSET 0) AS instant
RETURNING t.worker IS NOT NULL AS handed, CASE
    WHEN t.worker IS NOT NULL THEN headrace.tell_v1(t.worker, json_build_array(
        t.worker, t.id, t.name, t.kind, t.queue, t.pool, t.priority, t.arguments, t.codec, t.version, t.options,
        t.max_attempts, (extract(epoch FROM t.order_at) * 1000000)::bigint
    )::text)
END, CASE
    WHEN t.worker IS NULL OR pg_sequence_last_value('headrace.repeats'::regclass) IS DISTINCT FROM $3::bigint
    THEN headrace.inserted_v1(t.id, $3::bigint, CASE WHEN t.worker IS NULL THEN $4::text[] ELSE '{}' END)
END;
