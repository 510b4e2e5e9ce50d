-- name: get
-- Tasks by id, wherever they are.
SELECT id, name, kind, queue, pool, lane, priority, state, reason, false AS dead_letter, arguments, codec, version,
       options, attempt, max_attempts, losses, claim_no, run_no, worker, job, critical, waiting_on, created_at,
       enqueued_at, eligible_at, expires_at, claimed_at, started_at, NULL::timestamptz AS finished_at, cancelling_at,
       progress, NULL::text AS result, NULL::text AS result_ref, NULL::timestamptz AS result_expires_at,
       NULL::text AS error_class, NULL::text AS error_message, owner
FROM headrace.tasks WHERE id = ANY ($1::bigint[])
UNION ALL
SELECT id, name, kind, queue, pool, lane, priority, state, reason,
       dead_letter AND state = 'failed' AS dead_letter, arguments, codec, version,
       options, attempt, max_attempts, losses, claim_no, run_no, worker, job, critical, NULL, created_at,
       enqueued_at, eligible_at, expires_at, claimed_at, started_at, finished_at, cancelling_at,
       progress, result, result_ref, CASE WHEN result_expired THEN finished_at ELSE result_expires_at END AS result_expires_at,
       error_class, error_message, owner
FROM headrace.history WHERE id = ANY ($1::bigint[]);

-- name: list_live
-- Live tasks, newest creation first; the live table is small, whatever the past.
SELECT id, name, kind, queue, pool, lane, priority, state, reason, false AS dead_letter, arguments, codec, version,
       options, attempt, max_attempts, losses, claim_no, run_no, worker, job, critical, waiting_on, created_at,
       enqueued_at, eligible_at, expires_at, claimed_at, started_at, NULL::timestamptz AS finished_at, cancelling_at,
       progress, NULL::text AS result, NULL::text AS result_ref, NULL::timestamptz AS result_expires_at,
       NULL::text AS error_class, NULL::text AS error_message, owner
FROM headrace.tasks t
WHERE (cardinality($1::text[]) = 0 OR t.state = ANY ($1))
  AND (cardinality($2::text[]) = 0 OR t.queue = ANY ($2))
  AND (cardinality($3::text[]) = 0 OR t.name = ANY ($3))
  AND ($4::bigint IS NULL OR t.job = $4)
  AND ($5::text IS NULL OR t.worker = $5)
  AND ($6::timestamptz IS NULL OR (t.created_at, t.id) < ($6, $7::bigint))
  AND ($9::text IS NULL OR t.owner = $9)
ORDER BY t.created_at DESC, t.id DESC LIMIT $8::integer;

-- name: list_done
-- Ended tasks, last finished first. By ANY: whatever the statistics say, they are looked up by their ids.
SELECT id, name, kind, queue, pool, lane, priority, state, reason,
       dead_letter AND state = 'failed' AS dead_letter, arguments, codec, version,
       options, attempt, max_attempts, losses, claim_no, run_no, worker, job, critical, NULL AS waiting_on, created_at,
       enqueued_at, eligible_at, expires_at, claimed_at, started_at, finished_at, cancelling_at,
       progress, result, result_ref, CASE WHEN result_expired THEN finished_at ELSE result_expires_at END AS result_expires_at,
       error_class, error_message, owner
FROM headrace.history h
WHERE h.id = ANY (ARRAY(SELECT headrace.list_ended_v1($1, $2, $3, $4, $5, $6, $7, $8)))
ORDER BY h.finished_at DESC, h.id DESC;

-- name: list_done_of_owner
-- Theirs, last finished first, as `list_done` looks them up.
SELECT id, name, kind, queue, pool, lane, priority, state, reason,
       dead_letter AND state = 'failed' AS dead_letter, arguments, codec, version,
       options, attempt, max_attempts, losses, claim_no, run_no, worker, job, critical, NULL AS waiting_on, created_at,
       enqueued_at, eligible_at, expires_at, claimed_at, started_at, finished_at, cancelling_at,
       progress, result, result_ref, CASE WHEN result_expired THEN finished_at ELSE result_expires_at END AS result_expires_at,
       error_class, error_message, owner
FROM headrace.history h
WHERE h.id = ANY (ARRAY(SELECT headrace.list_owned_v1($9, $1, $2, $3, $5, $10, $6, $7, $8))) AND $4::bigint IS NULL
ORDER BY h.finished_at DESC, h.id DESC;

-- name: list_done_of_job
-- A job's tasks are few against all of history.
SELECT id, name, kind, queue, pool, lane, priority, state, reason,
       dead_letter AND state = 'failed' AS dead_letter, arguments, codec, version,
       options, attempt, max_attempts, losses, claim_no, run_no, worker, job, critical, NULL AS waiting_on, created_at,
       enqueued_at, eligible_at, expires_at, claimed_at, started_at, finished_at, cancelling_at,
       progress, result, result_ref, CASE WHEN result_expired THEN finished_at ELSE result_expires_at END AS result_expires_at,
       error_class, error_message, owner
FROM headrace.history h
WHERE h.job = $4::bigint
  AND (cardinality($1::text[]) = 0 OR h.state = ANY ($1))
  AND (cardinality($2::text[]) = 0 OR h.queue = ANY ($2))
  AND (cardinality($3::text[]) = 0 OR h.name = ANY ($3))
  AND ($5::text IS NULL OR h.worker = $5)
  AND ($6::timestamptz IS NULL OR (h.finished_at, h.id) < ($6, $7::bigint))
  AND ($9::text IS NULL OR h.owner = $9)
  AND ($10::boolean IS NULL OR (h.dead_letter AND h.state = 'failed') = $10)
ORDER BY h.finished_at DESC, h.id DESC LIMIT $8::integer;

-- name: list_dead_letters
-- Spelled out, so that the index that holds nothing else serves it.
SELECT id, name, kind, queue, pool, lane, priority, state, reason,
       dead_letter AND state = 'failed' AS dead_letter, arguments, codec, version,
       options, attempt, max_attempts, losses, claim_no, run_no, worker, job, critical, NULL AS waiting_on, created_at,
       enqueued_at, eligible_at, expires_at, claimed_at, started_at, finished_at, cancelling_at,
       progress, result, result_ref, CASE WHEN result_expired THEN finished_at ELSE result_expires_at END AS result_expires_at,
       error_class, error_message, owner
FROM headrace.history h
WHERE h.dead_letter AND h.state = 'failed'
  AND (cardinality($1::text[]) = 0 OR h.state = ANY ($1))
  AND (cardinality($2::text[]) = 0 OR h.queue = ANY ($2))
  AND (cardinality($3::text[]) = 0 OR h.name = ANY ($3))
  AND ($4::bigint IS NULL OR h.job = $4)
  AND ($5::text IS NULL OR h.worker = $5)
  AND ($6::timestamptz IS NULL OR (h.finished_at, h.id) < ($6, $7::bigint))
  AND ($9::text IS NULL OR h.owner = $9)
ORDER BY h.finished_at DESC, h.id DESC LIMIT $8::integer;

-- name: key_holders
-- Who holds the wanted keys now.
SELECT k.scope, k.key, k.task
FROM unnest($1::text[], $2::text[]) AS wanted (scope, key)
JOIN headrace.keys k ON k.scope = wanted.scope AND k.key = wanted.key
WHERE k.expires_at IS NULL OR k.expires_at > clock_timestamp();

-- name: attempts
-- The executions of a task before a claim, from the last on: no more of them are read than are wanted. A completed history
-- row whose claim has no row here, or only the refused report of another, is itself the attempt of that claim.
SELECT * FROM (
    (
        SELECT a.task, a.claim_no, a.run_no, a.attempt, a.state, a.charged, a.worker, a.executor, a.handle, a.claimed_at,
               a.started_at, a.finished_at, a.error_class, a.error_message, a.traceback, a.exit_code, a.recorded_by,
               a.late_state, a.late_at
        FROM headrace.attempts a
        WHERE a.task = $1 AND a.claim_no < coalesce($2::integer, 2147483647) AND NOT (a.state = 'refused' AND EXISTS (
            SELECT FROM headrace.history h WHERE h.id = a.task AND h.claim_no = a.claim_no AND h.state = 'completed'
        ))
        ORDER BY a.task DESC, a.claim_no DESC LIMIT $3::integer
    )
    UNION ALL
    SELECT h.id, h.claim_no, h.run_no, h.attempt, 'succeeded', true, h.worker, h.executor, a.handle, h.claimed_at,
           h.started_at, h.finished_at, NULL, NULL, NULL, NULL, 'worker', a.late_state, a.late_at
    FROM headrace.history h LEFT JOIN headrace.attempts a ON a.task = h.id AND a.claim_no = h.claim_no
    WHERE h.id = $1 AND h.claim_no < coalesce($2::integer, 2147483647) AND h.state = 'completed' AND coalesce(a.state, 'refused') = 'refused'
) AS found
ORDER BY claim_no DESC LIMIT $3::integer;

-- name: ended_counts
-- Of each state up to a cap, in the index by state.
SELECT s.state, c.n::integer FROM unnest($1::text[]) AS s(state) CROSS JOIN LATERAL (
    SELECT count(*) AS n FROM (SELECT FROM headrace.history h WHERE h.state = s.state LIMIT $2::integer) AS counted
) AS c WHERE c.n > 0;

-- name: waiting_retries
-- Among the first by their time, up to a cap. One that was put back since its last failure waits for something else.
SELECT count(*)::integer FROM (
    SELECT t.id, t.lane, t.attempt, t.claim_no, t.eligible_at FROM headrace.tasks t
    WHERE t.state = 'pending' AND t.ready_at IS NULL AND t.waiting_on IS NULL
    ORDER BY t.eligible_at LIMIT $1::integer
) AS d
WHERE d.lane = 1 AND d.attempt > 0 AND d.eligible_at > (SELECT clock_timestamp()) AND (d.claim_no <= d.attempt OR EXISTS (
    SELECT FROM headrace.attempts a WHERE a.task = d.id AND a.claim_no = d.claim_no AND a.charged
));

-- name: append_logs
-- Log lines; one that was sent twice is kept once.
SELECT headrace.append_logs_v1($1, $2, $3, $4, $5);

-- name: logs
-- The lines of a task, or of one of its attempts, after a sequence number.
SELECT task, claim_no, seq, at, stream, line FROM headrace.logs
WHERE task = $1 AND ($2::integer IS NULL OR claim_no = $2) AND seq > $3
  AND (claim_no, seq) > ($4::integer, $5::integer)
ORDER BY claim_no, seq LIMIT $6;

-- name: live_names
-- Over the oldest tasks, by the primary key.
SELECT t.name, t.kind, count(*)::integer AS n, min(t.id) AS oldest
FROM (SELECT name, kind, id FROM headrace.tasks ORDER BY id LIMIT $1) AS t
GROUP BY t.name, t.kind ORDER BY t.name, t.kind;

-- name: gate_holders
-- Whoever is in its slots; of an order also the first, which is the same one while it runs.
SELECT s.task FROM headrace.slots s WHERE s.key = $1
UNION
SELECT first.id FROM (
    SELECT t.id FROM headrace.tasks t WHERE t.order_key = $2::text ORDER BY t.created_at, t.id LIMIT 1
) AS first
ORDER BY 1 LIMIT $3;

-- name: now
-- The clock that everything goes by.
SELECT clock_timestamp();
