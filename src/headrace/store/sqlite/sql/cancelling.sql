-- name: ended_ids
-- Of these, the ones that are already over.
SELECT id FROM headrace_history WHERE id IN (SELECT value FROM json_each(?))

-- name: cancelling_of_worker
-- By the index on the holder.
SELECT id, claim_no FROM headrace_tasks WHERE worker = ? AND state = 'cancelling'

-- name: cancelling_too_long
-- Only held rows are in the index on the holder.
SELECT t.id, t.claim_no, t.state, t.reason, t.run_no, t.attempt, t.losses, t.lane, t.job, t.critical, t.gates,
    t.keyed, t.queue, t.eligible_at, t.order_at, t.expires_at, t.claimed_at, t.started_at, t.worker
FROM headrace_tasks AS t
WHERE t.worker IS NOT NULL AND t.state = 'cancelling' AND t.cancelling_at <= :until
LIMIT :limit
