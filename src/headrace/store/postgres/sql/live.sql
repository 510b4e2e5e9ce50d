-- name: job_events
-- Those behind a number, in order.
SELECT job, seq, at, state, total, completed, failed, cancelled FROM headrace.job_events
WHERE job = $1 AND seq > $2 ORDER BY seq LIMIT $3;

-- name: last_job_events
-- The last ones, newest first.
SELECT job, seq, at, state, total, completed, failed, cancelled FROM headrace.job_events
WHERE job = $1 ORDER BY seq DESC LIMIT $2;

-- name: job_lines
-- Those behind a number, in order.
SELECT job, job_seq AS seq, task, claim_no, at, stream, line FROM headrace.logs
WHERE job = $1 AND job_seq > $2 ORDER BY job_seq LIMIT $3;

-- name: last_job_lines
-- The last ones, newest first.
SELECT job, job_seq AS seq, task, claim_no, at, stream, line FROM headrace.logs
WHERE job = $1 ORDER BY job_seq DESC LIMIT $2;

-- name: job_heads
-- The numbers that come next.
SELECT c.job, c.seq AS event, coalesce(n.next, 0) AS line
FROM headrace.job_counts c LEFT JOIN headrace.job_lines n ON n.job = c.job
WHERE c.job = ANY ($1::bigint[]);

-- name: task_heads
-- What of these tasks can have changed; one snapshot, so that one which moves is seen in one of the tables.
SELECT t.id, t.state, t.claim_no, t.progress, (
    SELECT coalesce(max(l.seq) + 1, 0) FROM headrace.logs l WHERE l.task = t.id AND l.claim_no = t.claim_no
) AS line
FROM headrace.tasks t WHERE t.id = ANY ($1::bigint[])
UNION ALL
SELECT h.id, h.state, h.claim_no, h.progress, (
    SELECT coalesce(max(l.seq) + 1, 0) FROM headrace.logs l WHERE l.task = h.id AND l.claim_no = h.claim_no
) AS line
FROM headrace.history h WHERE h.id = ANY ($1::bigint[]);

-- name: announce
-- Hints for whoever watches; each text names several topics.
SELECT pg_notify('headrace_live', topics) FROM unnest($1::text[]) AS topics;
