-- name: release
-- Goes on with dependents that were too many for the transaction that ended what they wait for.
SELECT headrace.release_v1($1);
