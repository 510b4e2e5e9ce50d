-- name: slots_taken
-- The slots of one limit that somebody holds.
SELECT slot FROM headrace_slots WHERE key = ?

-- name: slots_of_claim
-- Whether this claim already holds a slot.
SELECT 1 FROM headrace_slots WHERE task = ? AND claim_no = ? LIMIT 1

-- name: take_slot
-- The primary key (key, slot) makes a limit a limit.
INSERT INTO headrace_slots (key, slot, task, claim_no) VALUES (:key, :slot, :task, :claim_no)

-- name: free_slots
-- Whatever these tasks held.
DELETE FROM headrace_slots WHERE task IN (SELECT value FROM json_each(?)) RETURNING key

-- name: older_in_order
-- Strict order: an older live task of the same key goes first, also while it waits for its retry.
SELECT 1 FROM headrace_tasks
WHERE order_key = :order_key AND (created_at, id) < (:created_at, :task)
LIMIT 1

-- name: queue_settings
-- What was set for these queues at run time. Parameter: a JSON array of names.
SELECT name, settings FROM headrace_queues WHERE settings <> '{}' AND name IN (SELECT value FROM json_each(?))

-- name: set_queue
-- One setting of a queue, by a merge patch.
INSERT INTO headrace_queues (name, settings) VALUES (:queue, json_patch('{}', :patch))
ON CONFLICT (name) DO UPDATE SET settings = json_patch(settings, :patch)

-- name: uncounted
-- Tasks of a queue that run, or will whatever is set now, and are in no slot of its limit. One that is claimed passes the
-- gates yet, unless it has none and its queue had no settings (`plain`), or is through: then it is in another slot.
-- Whoever has a holder is in a small index, however many wait.
SELECT t.id, t.claim_no, t.gates FROM headrace_tasks AS t INDEXED BY headrace_tasks_worker
WHERE t.worker > '' AND t.queue = :queue
    AND NOT EXISTS (SELECT 1 FROM headrace_slots AS s WHERE s.task = t.id AND s.key = :key)
    AND (
        t.state <> 'claimed' OR (t.gates IS NULL AND :plain)
        OR EXISTS (SELECT 1 FROM headrace_slots AS s WHERE s.task = t.id AND s.claim_no = t.claim_no)
    )
ORDER BY t.id

-- name: set_gates
-- The gates that a task has today.
UPDATE headrace_tasks SET gates = :gates WHERE id = :task

-- name: ready_rated
-- Tasks that were put off for a token of the queue's rate, which has changed. Whatever else puts a task off moves its
-- place in the line (`order_at`) as well, but for those of jobs, whose time comes by itself.
UPDATE headrace_tasks SET ready_at = :now, eligible_at = :now
WHERE id IN (
    SELECT id FROM headrace_tasks
    WHERE queue = :queue AND state = 'pending' AND ready_at IS NULL AND waiting_on IS NULL AND eligible_at > :now
        AND order_at <= :now AND job IS NULL AND instr(gates, '["rate","@queue:')
    LIMIT :limit
)

-- name: bucket
-- The token bucket of a rate.
SELECT tokens, updated_at FROM headrace_gates WHERE key = ?

-- name: write_bucket
-- Made at its first use.
INSERT INTO headrace_gates (key, tokens, updated_at, full_at) VALUES (:key, :tokens, :updated_at, :full_at)
ON CONFLICT (key) DO UPDATE SET
    tokens = excluded.tokens, updated_at = excluded.updated_at, full_at = excluded.full_at

-- name: park
-- Not admitted: leaves the ready index, uncharged. claim_no stays risen: that fence is used up.
UPDATE headrace_tasks
SET state = 'pending', worker = NULL, claimed_at = NULL, ready_at = NULL, waiting_on = :waiting_on,
    eligible_at = coalesce(:eligible_at, eligible_at)
WHERE id = :task

-- name: waiting
-- Who waits for a gate, in order.
SELECT id, queue, gates FROM headrace_tasks WHERE waiting_on = :key ORDER BY order_at, id LIMIT :limit

-- name: first_in_order
-- The oldest live task of an order key, where it waits for its turn.
SELECT id, queue, waiting_on FROM headrace_tasks WHERE order_key = ? ORDER BY created_at, id LIMIT 1

-- name: ready_waiting
-- Its gate has room: it may be claimed again.
UPDATE headrace_tasks SET waiting_on = NULL, ready_at = CASE WHEN eligible_at <= :now THEN :now END
WHERE id = :task AND state = 'pending' AND waiting_on IS NOT NULL

-- name: waited_keys
-- The gates after `after` that somebody waits for: from one to the next over the index, however many wait for each.
WITH RECURSIVE gate (key) AS (
    SELECT min(waiting_on) FROM headrace_tasks WHERE waiting_on > :after
    UNION ALL
    SELECT (SELECT min(t.waiting_on) FROM headrace_tasks AS t WHERE t.waiting_on > gate.key)
    FROM gate WHERE gate.key IS NOT NULL
)
SELECT key FROM gate WHERE key IS NOT NULL LIMIT :limit
