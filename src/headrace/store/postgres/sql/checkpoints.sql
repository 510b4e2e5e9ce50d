-- name: save_checkpoint
-- Stores a step's value unless one stands; the value that stands, no row when the claim no longer holds.
WITH holder AS (
    SELECT t.id, t.claim_no, t.attempt FROM headrace.tasks t
    WHERE t.id = $2 AND t.claim_no = $3 AND t.worker = $1 AND t.state IN ('claimed', 'running', 'paused', 'cancelling')
    FOR SHARE
)
INSERT INTO headrace.checkpoints AS c (task, name, value, claim_no, attempt, created_at)
SELECT h.id, $4, $5, h.claim_no, h.attempt + 1, clock_timestamp() FROM holder h
-- Writing nothing new makes the row that stands come back.
ON CONFLICT (task, name) DO UPDATE SET name = c.name
RETURNING c.value;

-- name: checkpoints
-- The steps of a task.
SELECT name, value FROM headrace.checkpoints WHERE task = $1 ORDER BY created_at, name;

-- name: step_of_claim
-- A claim that holds, held still: in whose name it runs.
SELECT t.owner FROM headrace.tasks t
WHERE t.id = $2 AND t.claim_no = $3 AND t.worker = $1 AND t.state IN ('claimed', 'running', 'paused', 'cancelling')
FOR NO KEY UPDATE;

-- name: checkpoint
-- One step of a task.
SELECT value FROM headrace.checkpoints WHERE task = $1 AND name = $2;
