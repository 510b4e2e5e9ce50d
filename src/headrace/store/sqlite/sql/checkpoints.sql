-- name: save_checkpoint
-- Fenced by the claim; the first value stored under a name stands.
INSERT INTO headrace_checkpoints (task, name, value, claim_no, attempt, created_at)
SELECT t.id, :name, :value, t.claim_no, t.attempt + 1, :now FROM headrace_tasks AS t
WHERE t.id = :task AND t.claim_no = :claim_no AND t.worker = :worker
    AND t.state IN ('claimed', 'running', 'paused', 'cancelling')
ON CONFLICT (task, name) DO NOTHING

-- name: checkpoint_that_stands
-- Nothing when the claim no longer holds.
SELECT c.value FROM headrace_checkpoints AS c JOIN headrace_tasks AS t ON t.id = c.task
WHERE c.task = :task AND c.name = :name AND t.claim_no = :claim_no AND t.worker = :worker
    AND t.state IN ('claimed', 'running', 'paused', 'cancelling')

-- name: owner_of_claim
-- In whose name what it spawns runs. Nothing when the claim no longer holds.
SELECT t.owner FROM headrace_tasks AS t
WHERE t.id = :task AND t.claim_no = :claim_no AND t.worker = :worker
    AND t.state IN ('claimed', 'running', 'paused', 'cancelling')

-- name: checkpoints
-- In the order in which they were stored.
SELECT name, value FROM headrace_checkpoints WHERE task = ? ORDER BY created_at, name

-- name: checkpoint
-- One of them.
SELECT value FROM headrace_checkpoints WHERE task = ? AND name = ?
