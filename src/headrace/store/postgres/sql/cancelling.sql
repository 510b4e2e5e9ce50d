-- name: cancel
-- Ends what nobody holds, tells the holders of the rest.
SELECT id, answer FROM headrace.cancel_v1($1, $2);

-- name: cancelling
-- The claims of a worker that someone asked to cancel.
SELECT id, claim_no FROM headrace.tasks WHERE worker = $1 AND state = 'cancelling' ORDER BY id;
