-- name: claim
-- Takes the best ready tasks of each want.
SELECT * FROM headrace.claim_v1($1, $2, $3, $4, $5, $6, $7, $8, $9, $10);

-- name: promote
-- Readies due tasks; how many.
SELECT headrace.promote_v1($1);

-- name: next_due
-- Seconds until the next task is due, NULL when none waits.
SELECT extract(epoch FROM (
    SELECT t.eligible_at FROM headrace.tasks t
    WHERE t.state = 'pending' AND t.ready_at IS NULL AND t.waiting_on IS NULL
    ORDER BY t.eligible_at LIMIT 1
) - clock_timestamp())::double precision;

-- name: start
-- Writes `running` and an attempt row.
SELECT task, claim_no FROM headrace.start_v1($1, $2, $3, $4);

-- name: held_states
-- The present state of claims that could not be started.
SELECT t.id, t.claim_no, t.state FROM headrace.tasks t
WHERE t.id = ANY ($2::bigint[]) AND t.worker = $1;

-- name: record_handle
-- Keeps the executor's handle on a running attempt.
UPDATE headrace.attempts a SET handle = $4::text
FROM headrace.tasks t
WHERE a.task = $2::bigint AND a.claim_no = $3::integer AND t.id = a.task AND t.claim_no = a.claim_no AND t.worker = $1
  AND t.state IN ('claimed', 'running', 'paused', 'cancelling')
RETURNING a.task;

-- name: progress
-- Keeps the last progress value of held tasks.
UPDATE headrace.tasks t SET progress = s.value
FROM unnest($2::bigint[], $3::integer[], $4::text[]) AS s(task, claim_no, value)
WHERE t.id = ANY (ARRAY[s.task]) AND t.claim_no = s.claim_no AND (t.worker = $1) IS TRUE
  AND t.state IN ('claimed', 'running', 'paused', 'cancelling');

-- name: stranded
-- Unstarted claims of a worker: after an answer was lost, those it never heard of.
SELECT t.id, t.claim_no FROM headrace.tasks t WHERE t.worker = $1 AND t.state = 'claimed';
