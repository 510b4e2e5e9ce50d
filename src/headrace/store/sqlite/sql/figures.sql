-- name: outcome_sums
-- By the index on the minute, and no further than it is asked for.
SELECT minute - minute % :bucket AS at, queue, name, outcome, sum(n) FROM headrace_outcomes
WHERE minute >= :since AND minute < :until
GROUP BY at, queue, name, outcome ORDER BY at, queue, name, outcome

-- name: depths_are_kept
-- Of this minute.
SELECT 1 FROM headrace_depths WHERE queue = '' AND minute = :minute

-- name: keep_depths
-- Of one queue.
INSERT INTO headrace_depths (queue, minute, depths) VALUES (?, ?, ?) ON CONFLICT (queue, minute) DO NOTHING

-- name: drop_depths
-- What is too old, by the index on the minute, a part at a time.
DELETE FROM headrace_depths WHERE rowid IN (
    SELECT rowid FROM headrace_depths INDEXED BY headrace_depths_minute WHERE minute < :until ORDER BY minute LIMIT 5000
)

-- name: depths_in
-- The first of a bucket, by the key.
SELECT depths FROM headrace_depths WHERE queue = :queue AND minute >= :since AND minute < :until ORDER BY minute LIMIT 1

-- name: sample_ends
-- The last of one state in one bucket.
SELECT id, name, queue, state, eligible_at, started_at, finished_at FROM headrace_history INDEXED BY headrace_history_state
WHERE state = :state AND finished_at >= :since AND finished_at < :until
ORDER BY finished_at DESC, id DESC LIMIT :each

-- name: own_ends
-- By the index on the owner.
SELECT id, name, queue, state, eligible_at, started_at, finished_at FROM headrace_history INDEXED BY headrace_history_owner
WHERE owner = :owner AND finished_at >= :since
ORDER BY finished_at DESC, id DESC LIMIT :limit

-- name: newest_live
-- The end of the table.
SELECT max(id) FROM headrace_tasks

-- name: newest_live_of_owner
-- The end of theirs in the index.
SELECT max(id) FROM headrace_tasks INDEXED BY headrace_tasks_owner WHERE owner = :owner

-- name: last_ended
-- Of one state.
SELECT id, finished_at FROM headrace_history INDEXED BY headrace_history_state
WHERE state = :state ORDER BY finished_at DESC, id DESC LIMIT 1

-- name: last_ended_of_owner
-- By the index on the owner.
SELECT id, finished_at FROM headrace_history INDEXED BY headrace_history_owner
WHERE owner = :owner ORDER BY finished_at DESC, id DESC LIMIT 1

-- name: holding
-- Up to the cap, in the index.
SELECT count(*) FROM (
    SELECT 1 FROM headrace_tasks INDEXED BY headrace_tasks_worker WHERE worker = :worker LIMIT :cap
)
