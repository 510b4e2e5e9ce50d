-- name: release
-- Goes on with dependents that were too many for the transaction that ended what they wait for.
SELECT headrace.release_v1($1);

-- name: edges
-- What tasks wait for, or waited for.
SELECT d.task, d.upstream, d.kind, d.input, d.place FROM headrace.dependencies d
WHERE d.task = ANY ($1::bigint[]) ORDER BY d.task, d.place;

-- name: inputs
-- What the edges of a task pass on to it.
SELECT d.input, d.place, d.upstream AS task, coalesce(h.name, t.name) AS name, coalesce(h.state, t.state) AS state,
       coalesce(h.codec, t.codec) AS codec, h.result, h.result_ref
FROM headrace.dependencies d
LEFT JOIN headrace.history h ON h.id = d.upstream
LEFT JOIN headrace.tasks t ON t.id = d.upstream
WHERE d.task = $1 AND d.input IS NOT NULL AND (h.id IS NOT NULL OR t.id IS NOT NULL)
ORDER BY d.input, d.place;

-- name: undecided
-- A task that waits for an approval, held still; no row when it does not.
SELECT t.id FROM headrace.tasks t WHERE t.id = $1 AND t.state = 'pending_approval' FOR UPDATE;

-- name: approve
-- It may run, and its age counts from here.
UPDATE headrace.tasks t
SET state = 'pending', waiting_on = NULL, eligible_at = greatest(t.eligible_at, instant.at),
    expires_at = instant.at + make_interval(secs => t.max_age),
    ready_at = CASE WHEN t.eligible_at <= instant.at THEN instant.at END
FROM (SELECT clock_timestamp() AS at OFFSET 0) AS instant
WHERE t.id = $1
RETURNING t.queue, t.claim_no, t.attempt, instant.at;

-- name: keep_approval
-- Who decided and when; of the latest decision.
INSERT INTO headrace.checkpoints (task, name, value, claim_no, attempt, created_at)
VALUES ($1, 'approval', $2, $3, $4, $5)
ON CONFLICT (task, name) DO UPDATE SET value = excluded.value, created_at = excluded.created_at;
