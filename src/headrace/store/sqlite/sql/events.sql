-- name: insert_event
-- Ids rise with the commits, since both happen under the write lock: `deliver` goes by that.
INSERT INTO headrace_events (id, name, key, payload, created_at) VALUES (?, ?, ?, ?, ?)

-- name: waiting_for_event
-- Those that wait for one event.
SELECT w.task
FROM headrace_waits AS w INDEXED BY headrace_waits_event CROSS JOIN headrace_tasks AS t ON t.id = w.task
WHERE w.event = :event AND w.key = :key AND NOT w.over
    AND t.state = 'blocked' AND t.waiting_on = 'event:' || w.event || '/' || w.key
LIMIT :limit

-- name: resume
-- Its slot was given back, its place was not. The age counts from here.
UPDATE headrace_tasks
SET state = 'pending', waiting_on = NULL, ready_at = :now, eligible_at = max(eligible_at, :now),
    expires_at = :now + CAST(max_age * 1000000 AS INTEGER)
WHERE id IN (SELECT value FROM json_each(:ids)) AND state = 'blocked'
RETURNING queue

-- name: run_of_claim
-- When the present run of a task was enqueued, and the id behind which events of that very instant came after it: ids of
-- tasks and events are taken under the write lock. Nothing when the claim no longer holds.
SELECT t.enqueued_at, iif(t.run_no = 1, t.id, 0) FROM headrace_tasks AS t
WHERE t.id = :task AND t.claim_no = :claim_no AND t.worker = :worker
    AND t.state IN ('claimed', 'running', 'paused', 'cancelling')

-- name: note_wait
-- Its time counts from the first call.
INSERT INTO headrace_waits (task, step, event, key, expires_at) VALUES (:task, :step, :event, :key, :expires_at)
ON CONFLICT (task, step) DO UPDATE SET event = excluded.event, key = excluded.key, over = 0, taken = NULL
RETURNING expires_at

-- name: event_for_wait
-- The oldest since the run began that no other wait of the task has taken, and that came in time.
SELECT e.id, e.payload FROM headrace_events AS e
WHERE e.name = :event AND e.key = :key AND e.created_at >= :since AND (e.created_at > :since OR e.id > :behind)
    AND e.created_at <= coalesce(:expires_at, e.created_at)
    AND NOT EXISTS (SELECT 1 FROM headrace_waits AS w WHERE w.task = :task AND w.taken = e.id)
ORDER BY e.created_at, e.id LIMIT 1

-- name: end_wait
-- With the event that it took; none when its time was over.
UPDATE headrace_waits SET over = 1, taken = :taken WHERE task = :task AND step = :step

-- name: state_of_wait
-- What a task that is about to be suspended waits for, and whether there is still something to wait for.
SELECT w.event, w.key,
    NOT w.over AND coalesce(w.expires_at > :now, 1) AND NOT EXISTS (
        SELECT 1 FROM headrace_events AS e
        WHERE e.name = w.event AND e.key = w.key AND e.created_at >= t.enqueued_at
            AND (e.created_at > t.enqueued_at OR t.run_no > 1 OR e.id > t.id)
            AND e.created_at <= coalesce(w.expires_at, e.created_at)
            AND NOT EXISTS (SELECT 1 FROM headrace_waits AS own WHERE own.task = w.task AND own.taken = e.id)
    )
FROM headrace_waits AS w JOIN headrace_tasks AS t ON t.id = w.task
WHERE w.task = :task AND w.step = :step

-- name: is_live
-- Whether a task has not ended.
SELECT 1 FROM headrace_tasks WHERE id = ?

-- name: add_edge
-- To a task whose end, whatever it is, resumes another; once.
INSERT INTO headrace_dependencies (task, place, upstream, kind)
SELECT :task, coalesce((SELECT max(d.place) + 1 FROM headrace_dependencies AS d WHERE d.task = :task), 0), :upstream, 1
WHERE NOT EXISTS (SELECT 1 FROM headrace_dependencies AS d WHERE d.upstream = :upstream AND d.task = :task)

-- name: mark_awaited
-- The end of a task without a job is looked at when it is keyed.
UPDATE headrace_tasks SET keyed = 1 WHERE id = ? AND job IS NULL AND NOT keyed

-- name: mark_ended_awaited
-- The same for one that somebody may run again.
UPDATE headrace_history SET keyed = 1 WHERE id = ? AND job IS NULL AND NOT keyed

-- name: delivery
-- Up to which event all who waited have been resumed, whether there are newer ones, and whether a wait is over by time.
SELECT mark.seen, EXISTS (SELECT 1 FROM headrace_events AS e WHERE e.id > mark.seen),
    EXISTS (
        SELECT 1 FROM headrace_waits AS w
        WHERE NOT w.over AND w.expires_at IS NOT NULL AND w.expires_at <= :now
    )
FROM (
    SELECT coalesce((SELECT CAST(value AS INTEGER) FROM headrace_meta WHERE key = 'delivered event'), 0) AS seen
) AS mark

-- name: last_of_events
-- The last of the next few, and how many they are.
SELECT max(next.id), count(*) FROM (
    SELECT e.id FROM headrace_events AS e WHERE e.id > :seen ORDER BY e.id LIMIT :limit
) AS next

-- name: waiting_for_events
-- Those that wait for one of a few and would take it, as `state_of_wait` says: whoever has had it is not resumed again.
SELECT DISTINCT w.task
FROM headrace_events AS e
CROSS JOIN headrace_waits AS w INDEXED BY headrace_waits_event ON w.event = e.name AND w.key = e.key AND NOT w.over
CROSS JOIN headrace_tasks AS t ON t.id = w.task
WHERE e.id > :seen AND e.id <= :last AND e.created_at >= t.enqueued_at
    AND (e.created_at > t.enqueued_at OR t.run_no > 1 OR e.id > t.id)
    AND e.created_at <= coalesce(w.expires_at, e.created_at)
    AND t.state = 'blocked' AND t.waiting_on = 'event:' || w.event || '/' || w.key
    AND NOT EXISTS (SELECT 1 FROM headrace_waits AS own WHERE own.task = w.task AND own.taken = e.id)
LIMIT :limit

-- name: move_delivery
-- In the transaction that resumed them.
INSERT INTO headrace_meta (key, value) VALUES ('delivered event', ?)
ON CONFLICT (key) DO UPDATE SET value = excluded.value

-- name: waiting_too_long
-- Their time is over; longest ago first.
SELECT w.task
FROM headrace_waits AS w INDEXED BY headrace_waits_expires CROSS JOIN headrace_tasks AS t ON t.id = w.task
WHERE NOT w.over AND w.expires_at IS NOT NULL AND w.expires_at <= :now
    AND t.state = 'blocked' AND t.waiting_on = 'event:' || w.event || '/' || w.key
ORDER BY w.expires_at LIMIT :limit

-- name: drop_waits_of_ended
-- Nobody asks for them any more.
DELETE FROM headrace_waits WHERE (task, step) IN (
    SELECT w.task, w.step FROM headrace_waits AS w INDEXED BY headrace_waits_expires
    WHERE NOT w.over AND w.expires_at IS NOT NULL AND w.expires_at <= :now
        AND NOT EXISTS (SELECT 1 FROM headrace_tasks AS t WHERE t.id = w.task)
    LIMIT :limit
)

-- name: events
-- The last first, by the index on their time.
SELECT id, name, key, payload, created_at FROM headrace_events INDEXED BY headrace_events_created
WHERE created_at <= :at AND (created_at, id) < (:at, :id)
ORDER BY created_at DESC, id DESC LIMIT :limit

-- name: events_of_key
-- Those of one key of a name, by the index on both.
SELECT id, name, key, payload, created_at FROM headrace_events INDEXED BY headrace_events_name
WHERE name = :event AND key = :key AND (created_at, id) < (:at, :id)
ORDER BY created_at DESC, id DESC LIMIT :limit

-- name: skim_events
-- The last of all names, by the index on their time; what they hold only of the one that is looked for.
SELECT id, name, key, CASE WHEN name = :event THEN payload END, created_at
FROM headrace_events INDEXED BY headrace_events_created
WHERE created_at <= :at AND (created_at, id) < (:at, :id)
ORDER BY created_at DESC, id DESC LIMIT :limit
