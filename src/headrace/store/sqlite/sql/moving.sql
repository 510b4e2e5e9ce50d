-- name: moved_to
-- The URL to which the ledger has moved.
SELECT value FROM headrace_meta WHERE key = 'moved_to'

-- name: outgoing
-- What was taken out of the tables and is on its way there.
SELECT value FROM headrace_meta WHERE key >= 'outgoing ' AND key < 'outgoing!'
