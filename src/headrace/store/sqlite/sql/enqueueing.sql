-- name: take_ids
-- Ids are known before the insert. Also the first write of a user's transaction: it takes the write lock at once.
INSERT INTO headrace_ids (name, next) VALUES ('tasks', 1 + ?)
ON CONFLICT (name) DO UPDATE SET next = next + excluded.next - 1
RETURNING next

-- name: insert_tasks
-- One JSON text holds the whole batch, so the same statement runs on any driver. WHERE true: the parser needs it.
INSERT INTO headrace_tasks (
    id, name, kind, queue, pool, priority, state, max_attempts, job, critical, arguments, codec, version, options,
    gates, order_key, keyed, max_age, created_at, enqueued_at, eligible_at, order_at, expires_at, ready_at,
    dead_letter, owner, waiting_on
)
SELECT
    json_extract(value, '$[0]'), json_extract(value, '$[1]'), json_extract(value, '$[2]'), json_extract(value, '$[3]'),
    json_extract(value, '$[4]'), json_extract(value, '$[5]'), json_extract(value, '$[6]'), json_extract(value, '$[7]'),
    json_extract(value, '$[8]'), json_extract(value, '$[9]'), json_extract(value, '$[10]'),
    json_extract(value, '$[11]'), json_extract(value, '$[12]'), json_extract(value, '$[13]'),
    json_extract(value, '$[14]'), json_extract(value, '$[15]'), json_extract(value, '$[16]'),
    json_extract(value, '$[17]'), json_extract(value, '$[18]'), json_extract(value, '$[19]'),
    json_extract(value, '$[20]'), json_extract(value, '$[21]'), json_extract(value, '$[22]'),
    json_extract(value, '$[23]'), json_extract(value, '$[24]'), json_extract(value, '$[25]'),
    json_extract(value, '$[26]')
FROM json_each(?)
WHERE true
ON CONFLICT (id) DO NOTHING

-- name: insert_task
-- Of a job that is being made: on our own connection, without the way by JSON. Ends with the values of one, see
-- Transaction.insert_all.
INSERT INTO headrace_tasks (
    id, name, kind, queue, pool, priority, state, max_attempts, job, critical, arguments, codec, version, options,
    gates, order_key, keyed, max_age, created_at, enqueued_at, eligible_at, order_at, expires_at, ready_at,
    dead_letter, owner, waiting_on
) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)

-- name: insert_run
-- Tasks that differ in their arguments only: those are an array of texts, and the ids follow the first.
-- A third of the time of a statement for each row.
INSERT INTO headrace_tasks (
    id, name, kind, queue, pool, priority, state, max_attempts, job, critical, arguments, codec, version, options,
    gates, order_key, keyed, max_age, created_at, enqueued_at, eligible_at, order_at, expires_at, ready_at,
    dead_letter, owner
)
SELECT ? + key, ?, ?, ?, ?, ?, ?, ?, ?, ?, atom, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ? FROM json_each(?)

-- name: key_holders
-- Who holds the wanted keys, and what of it lives. The parameter is a JSON array of [scope, key].
SELECT k.scope, k.key, k.task, k.expires_at, t.state, t.created_at, t.job, t.order_at
FROM json_each(?) AS wanted
CROSS JOIN headrace_keys AS k
    ON k.scope = json_extract(wanted.value, '$[0]') AND k.key = json_extract(wanted.value, '$[1]')
LEFT JOIN headrace_tasks AS t ON t.id = k.task

-- name: keep_overtaken_names
-- Who loses a key to a newer call while it runs wants it back for a manual retry. The parameter is an array of keys.
INSERT INTO headrace_keys (scope, key, task, ttl, expires_at)
SELECT 'ended:' || k.task, k.key, k.task, k.ttl, 0
FROM json_each(?) AS wanted CROSS JOIN headrace_keys AS k ON k.scope = 'unique' AND k.key = wanted.value
WHERE true
ON CONFLICT (scope, key) DO NOTHING

-- name: take_keys
-- An expired key, and one whose holder is being replaced, change hands.
INSERT INTO headrace_keys (scope, key, task, ttl, expires_at)
SELECT
    json_extract(value, '$[0]'), json_extract(value, '$[1]'), json_extract(value, '$[2]'), json_extract(value, '$[3]'),
    json_extract(value, '$[4]')
FROM json_each(?)
WHERE true
ON CONFLICT (scope, key) DO UPDATE SET task = excluded.task, ttl = excluded.ttl, expires_at = excluded.expires_at

-- name: replace_task
-- The holder of the key has not been claimed: it takes the newer call's arguments, time and owner. One that waits for
-- its approval goes on waiting for it.
UPDATE headrace_tasks
SET arguments = ?, codec = ?, version = ?, options = ?, queue = ?, pool = ?, priority = ?, max_attempts = ?,
    gates = ?, order_key = ?, max_age = ?, enqueued_at = ?, expires_at = ?, eligible_at = ?, order_at = ?,
    ready_at = CASE state WHEN 'pending' THEN ? END, dead_letter = ?,
    owner = coalesce(?, (SELECT j.owner FROM headrace_jobs AS j WHERE j.id = headrace_tasks.job)),
    waiting_on = NULL, keyed = 1
WHERE id = ? AND state IN ('pending', 'pending_approval')

-- name: jobs_to_join
-- A job's tasks sort by the job's creation, and are its owner's.
SELECT id, state, created_at, owner FROM headrace_jobs WHERE id IN (SELECT value FROM json_each(?))

-- name: count_added
-- Our own enqueue counts at once: the finisher must not complete the job before these.
UPDATE headrace_job_counts SET total = total + ? WHERE job = ?

-- name: add_later
-- A user's transaction only leaves a note; a finisher folds it in.
INSERT INTO headrace_job_additions (id, job, n) VALUES (?, ?, ?)
