-- name: due_tasks
-- What waits and is due, and the queues of those that are new and of those that are retries. Three texts, because Python
-- gives up its lock for each row that it fetches (see Transaction.insert_all). The index is ordered by their time:
-- nothing due costs one look at its first entry.
SELECT
    json_group_array(id), json_group_array(queue) FILTER (WHERE lane = 0),
    json_group_array(queue) FILTER (WHERE lane = 1)
FROM (
    SELECT id, queue, lane FROM headrace_tasks
    WHERE state = 'pending' AND ready_at IS NULL AND waiting_on IS NULL AND eligible_at <= :now
    ORDER BY eligible_at
    LIMIT :limit
)

-- name: promote_due
-- Makes them ready. Parameters: a JSON array of ids, the instant.
UPDATE headrace_tasks SET ready_at = :now WHERE id IN (SELECT value FROM json_each(:ids))

-- name: next_due
-- When the next waiting task becomes due.
SELECT min(eligible_at) FROM headrace_tasks WHERE state = 'pending' AND ready_at IS NULL AND waiting_on IS NULL

-- name: outlook
-- When the next waiting task becomes due, and which of the wanted queues, pools and lanes have something ready; those of
-- paused queues have not, and nothing has once the ledger has moved away. One statement, because most wants find nothing,
-- and each would cost as much as this. The parameter is a JSON array of [queue, pool, lane]; the index is named, because
-- after ANALYZE SQLite would scan.
SELECT
    (SELECT min(eligible_at) FROM headrace_tasks WHERE state = 'pending' AND ready_at IS NULL AND waiting_on IS NULL),
    (
        SELECT json_group_array(want.key) FROM json_each(?) AS want
        WHERE EXISTS (
            SELECT 1 FROM headrace_tasks AS t INDEXED BY headrace_tasks_ready
            WHERE t.state = 'pending' AND t.ready_at IS NOT NULL AND t.queue = json_extract(want.value, '$[0]')
                AND t.pool = json_extract(want.value, '$[1]') AND t.lane = json_extract(want.value, '$[2]')
        ) AND NOT EXISTS (
            SELECT 1 FROM headrace_queues AS q WHERE q.name = json_extract(want.value, '$[0]') AND q.paused
        ) AND NOT EXISTS (SELECT 1 FROM headrace_meta WHERE key = 'moved_to')
    )

-- name: claim
-- Reads the ready index in order and stops at the limit. The write lock makes this the only claimer: nothing is skipped,
-- and `take_claims` finds the rows as they are here. Both in one, with RETURNING, would give them out of order, and later.
-- The columns are those of ClaimedTask; the truth values of SQLite, 0 and 1, are equal to Python's. All of them in one
-- text, because Python gives up its lock for each row that it fetches (see Transaction.insert_all). Long payloads come
-- by themselves, with `claim_payload`: a text has an end.
SELECT json_group_array(json_array(
    id, claim_no + 1, name, kind, queue, pool, lane, priority,
    CASE WHEN length(arguments) + length(options) <= :longest THEN arguments END, codec, version,
    CASE WHEN length(arguments) + length(options) <= :longest THEN options END, attempt, losses,
    max_attempts, run_no, job,
    gates IS NOT NULL OR EXISTS (SELECT 1 FROM headrace_queues AS q WHERE q.name = :queue AND q.settings <> '{}'),
    coalesce(expires_at <= :now, 0), 'claimed', order_at,
    max(:now - eligible_at, 0) / 1000000.0
))
FROM (
    SELECT * FROM headrace_tasks
    WHERE state = 'pending' AND ready_at IS NOT NULL AND queue = :queue AND pool = :pool AND lane = :lane
    ORDER BY priority DESC, order_at, id
    LIMIT :n
)

-- name: claim_payload
-- What `claim` leaves out.
SELECT arguments, options FROM headrace_tasks WHERE id = ?

-- name: take_claims
-- The host's clock may be set back between two writes: the instants of one task never run backwards for it.
UPDATE headrace_tasks
SET state = 'claimed', worker = :worker, claim_no = claim_no + 1,
    claimed_at = max(:now, enqueued_at), started_at = NULL, ready_at = NULL
WHERE id IN (SELECT value FROM json_each(:ids))

-- name: give_back
-- Claims of which nobody heard. One that is being cancelled waits for the sweeper, which ends what nobody answers for.
UPDATE headrace_tasks
SET state = 'pending', worker = NULL, claimed_at = NULL, ready_at = :now
WHERE worker = :worker AND state = 'claimed'
    AND (id, claim_no) IN (SELECT json_extract(value, '$[0]'), json_extract(value, '$[1]') FROM json_each(:refs))
RETURNING queue

-- name: start_jobs
-- A job runs from the first claim of one of its tasks on, and its deadline counts from there.
UPDATE headrace_jobs
SET state = 'running', started_at = coalesce(started_at, :now),
    deadline_at = :now + CAST(timeout * 1000000 AS INTEGER)
WHERE state = 'pending' AND id IN (SELECT value FROM json_each(:jobs))
RETURNING id

-- name: fenced
-- The claims that still hold. Parameters: a JSON array of [task, claim_no], the worker.
SELECT t.id, t.claim_no, t.state, t.gates, t.created_at, t.run_no, t.claimed_at, t.attempt
FROM json_each(:refs) AS ref
CROSS JOIN headrace_tasks AS t
    ON t.id = json_extract(ref.value, '$[0]') AND t.claim_no = json_extract(ref.value, '$[1]')
WHERE t.worker = :worker AND t.state IN ('claimed', 'running', 'paused', 'cancelling')

-- name: start
-- Its code is being entered.
UPDATE headrace_tasks SET state = 'running', started_at = coalesce(started_at, max(:now, claimed_at))
WHERE id = :task AND claim_no = :claim_no AND worker = :worker AND state = 'claimed'

-- name: open_attempt
-- Until it ends nobody knows whether it is charged. The refused report of a stranger may stand there already.
INSERT INTO headrace_attempts (task, claim_no, run_no, state, worker, executor, claimed_at, started_at)
VALUES (:task, :claim_no, :run_no, 'running', :worker, :executor, :claimed_at, max(:now, :claimed_at))
ON CONFLICT (task, claim_no) DO UPDATE SET
    state = 'running', worker = excluded.worker, executor = excluded.executor, claimed_at = excluded.claimed_at,
    started_at = excluded.started_at, recorded_by = NULL
WHERE state = 'refused'

-- name: record_handle
-- Fenced by the claim, like every write of a worker.
UPDATE headrace_attempts SET handle = :handle
WHERE task = :task AND claim_no = :claim_no AND EXISTS (
    SELECT 1 FROM headrace_tasks AS t
    WHERE t.id = :task AND t.claim_no = :claim_no AND t.worker = :worker
        AND t.state IN ('claimed', 'running', 'paused', 'cancelling')
)

-- name: record_progress
-- Only the last value is kept.
UPDATE headrace_tasks SET progress = :value
WHERE id = :task AND claim_no = :claim_no AND worker = :worker
    AND state IN ('claimed', 'running', 'paused', 'cancelling')
