-- name: cancel
-- Ends what nobody holds, tells the holders of the rest.
SELECT c.id, c.answer, coalesce(
    (SELECT t.job FROM headrace.tasks t WHERE t.id = c.id), (SELECT h.job FROM headrace.history h WHERE h.id = c.id)
) AS job
FROM headrace.cancel_v1($1, $2) AS c;

-- name: cancelling
-- The claims of a worker that someone asked to cancel.
SELECT id, claim_no FROM headrace.tasks WHERE worker = $1 AND state = 'cancelling' ORDER BY id;
