-- name: make_ended
-- What ends in this transaction and has dependents; like the other tables of a batch, in memory and of this connection
-- alone. The outcome: 0 completed, 1 failed or rejected, 2 cancelled.
CREATE TEMP TABLE IF NOT EXISTS headrace_ended (id INTEGER PRIMARY KEY, outcome INTEGER NOT NULL)

-- name: make_lost
-- What can never run because of it. The kind of the edge that says most: 0 before 2.
CREATE TEMP TABLE IF NOT EXISTS headrace_lost (id INTEGER PRIMARY KEY, kind INTEGER NOT NULL)

-- name: make_lowered
-- The barriers that fall, and by how much.
CREATE TEMP TABLE IF NOT EXISTS headrace_lowered (task INTEGER PRIMARY KEY, n INTEGER NOT NULL)

-- name: clear_ended
-- Of the batch before, or of one that was undone.
DELETE FROM temp.headrace_ended

-- name: clear_lost
-- The same.
DELETE FROM temp.headrace_lost

-- name: clear_lowered
-- The same.
DELETE FROM temp.headrace_lowered

-- name: note_ended
-- Of these, the ones that somebody waits for, or waited for: one look into an index for each.
INSERT INTO temp.headrace_ended (id, outcome)
SELECT done.value, :outcome FROM json_each(:ids) AS done
WHERE EXISTS (SELECT 1 FROM headrace_dependencies AS d WHERE d.upstream = done.value)

-- name: remarkable_ended
-- Those with edges that can never be satisfied any more (how many), or with more than one transaction frees.
SELECT done.id, count(*), sum((d.kind = 0 AND done.outcome <> 0) OR (d.kind = 2 AND done.outcome <> 1)) AS lost
FROM temp.headrace_ended AS done CROSS JOIN headrace_dependencies AS d ON d.upstream = done.id
GROUP BY done.id HAVING lost > 0 OR count(*) > :most

-- name: note_lost
-- Down the graph in one statement; who waits for the end whatever it is stays. Who waits for an event has begun, and so
-- has whoever gave its slot back in its present run, and was not cleared since: what it needed was there before.
INSERT INTO temp.headrace_lost (id, kind)
WITH RECURSIVE lost (id, kind) AS (
    SELECT d.task, d.kind
    FROM temp.headrace_ended AS done
    CROSS JOIN headrace_dependencies AS d ON d.upstream = done.id
    CROSS JOIN headrace_tasks AS t ON t.id = d.task
    WHERE ((d.kind = 0 AND done.outcome <> 0) OR (d.kind = 2 AND done.outcome <> 1))
        AND t.state = 'blocked' AND coalesce(t.waiting_on, 'approval') = 'approval'
        AND NOT EXISTS (
            SELECT 1 FROM headrace_attempts AS a
            WHERE a.task = t.id AND a.run_no = t.run_no AND a.state = 'suspended' AND a.finished_at > t.enqueued_at
        )
    UNION
    SELECT d.task, d.kind
    FROM lost
    CROSS JOIN headrace_dependencies AS d ON d.upstream = lost.id
    CROSS JOIN headrace_tasks AS t ON t.id = d.task
    WHERE d.kind <> 1 AND t.state = 'blocked' AND coalesce(t.waiting_on, 'approval') = 'approval'
        AND NOT EXISTS (
            SELECT 1 FROM headrace_attempts AS a
            WHERE a.task = t.id AND a.run_no = t.run_no AND a.state = 'suspended' AND a.finished_at > t.enqueued_at
        )
)
SELECT lost.id, min(lost.kind) FROM lost GROUP BY lost.id

-- name: lost_of_jobs
-- What their jobs must count.
SELECT t.job, count(*) FROM temp.headrace_lost AS lost CROSS JOIN headrace_tasks AS t ON t.id = lost.id GROUP BY t.job

-- name: remarkable_lost
-- Those that have something beside their row.
SELECT t.id, t.keyed, t.gates FROM temp.headrace_lost AS lost CROSS JOIN headrace_tasks AS t ON t.id = lost.id
WHERE t.keyed OR t.gates IS NOT NULL

-- name: lost_history
-- As `insert_history` does.
INSERT INTO headrace_history (
    id, name, kind, queue, pool, lane, priority, state, reason, claim_no, attempt, losses, run_no, max_attempts, job,
    critical, arguments, codec, version, options, gates, order_key, keyed, max_age, created_at, enqueued_at,
    eligible_at, order_at, expires_at, progress, finished_at, dead_letter, owner
)
SELECT
    t.id, t.name, t.kind, t.queue, t.pool, t.lane, t.priority, 'cancelled',
    CASE lost.kind WHEN 2 THEN 'skipped' ELSE 'upstream_failed' END, t.claim_no, t.attempt, t.losses, t.run_no,
    t.max_attempts, t.job, t.critical, t.arguments, t.codec, t.version, t.options, t.gates, t.order_key, t.keyed,
    t.max_age, t.created_at, t.enqueued_at, t.eligible_at, t.order_at, t.expires_at, t.progress,
    max(:now, t.enqueued_at), t.dead_letter, t.owner
FROM temp.headrace_lost AS lost CROSS JOIN headrace_tasks AS t ON t.id = lost.id

-- name: note_lost_asked
-- As `note_asked` does.
INSERT INTO headrace_waits (task, step, event, key)
SELECT t.id, 'approval', 'approval', '' FROM temp.headrace_lost AS lost CROSS JOIN headrace_tasks AS t ON t.id = lost.id
WHERE t.waiting_on = 'approval'
ON CONFLICT (task, step) DO NOTHING

-- name: delete_lost
-- The other half of the move.
DELETE FROM headrace_tasks WHERE id IN (SELECT id FROM temp.headrace_lost)

-- name: lost_have_ended
-- As cancelled, for those who wait for just any end of theirs.
INSERT INTO temp.headrace_ended (id, outcome)
SELECT lost.id, 2 FROM temp.headrace_lost AS lost
WHERE EXISTS (SELECT 1 FROM headrace_dependencies AS d WHERE d.upstream = lost.id)

-- name: keep_back
-- Who frees more than one transaction does: `release` takes that over, from the first on.
INSERT INTO headrace_releases (upstream, state, after)
SELECT h.id, h.state, 0 FROM headrace_history AS h WHERE h.id IN (SELECT value FROM json_each(?))
ON CONFLICT (upstream) DO UPDATE SET state = excluded.state, after = excluded.after

-- name: drop_kept_back
-- Those are left to it.
DELETE FROM temp.headrace_ended WHERE id IN (SELECT value FROM json_each(?))

-- name: note_lowered
-- By sums: a barrier that a whole batch lowers is written once. Whoever has begun goes on after any end.
INSERT INTO temp.headrace_lowered (task, n)
SELECT d.task, count(*)
FROM temp.headrace_ended AS done CROSS JOIN headrace_dependencies AS d ON d.upstream = done.id
WHERE d.kind = 1 OR (d.kind = 0 AND done.outcome = 0) OR (d.kind = 2 AND done.outcome = 1)
    OR EXISTS (
        SELECT 1 FROM headrace_tasks AS t CROSS JOIN headrace_attempts AS a ON a.task = t.id
        WHERE t.id = d.task AND a.run_no = t.run_no AND a.state = 'suspended' AND a.finished_at > t.enqueued_at
    )
GROUP BY d.task

-- name: note_released
-- The same for a part of the dependents of one.
INSERT INTO temp.headrace_lowered (task, n)
SELECT d.task, count(*) FROM headrace_dependencies AS d
WHERE d.upstream = :upstream AND d.task > :after AND d.task <= :last
    AND (
        d.kind = 1 OR (d.kind = 0 AND :outcome = 0) OR (d.kind = 2 AND :outcome = 1)
        OR EXISTS (
            SELECT 1 FROM headrace_tasks AS t CROSS JOIN headrace_attempts AS a ON a.task = t.id
            WHERE t.id = d.task AND a.run_no = t.run_no AND a.state = 'suspended' AND a.finished_at > t.enqueued_at
        )
    )
GROUP BY d.task

-- name: lower_barriers
-- Not below zero: a task that has begun may see the second end of one that somebody ran again.
UPDATE headrace_barriers
SET remaining = max(
    remaining - (SELECT low.n FROM temp.headrace_lowered AS low WHERE low.task = headrace_barriers.task), 0
)
WHERE task IN (SELECT task FROM temp.headrace_lowered)

-- name: free_lowered
-- Nothing is left to wait for, but perhaps time or a person. The age counts from here.
UPDATE headrace_tasks
SET state = iif(waiting_on IS NULL, 'pending', 'pending_approval'), waiting_on = NULL,
    ready_at = CASE WHEN waiting_on IS NULL AND eligible_at <= :now THEN :now END,
    eligible_at = max(eligible_at, :now), expires_at = :now + CAST(max_age * 1000000 AS INTEGER)
WHERE id IN (
    SELECT low.task FROM temp.headrace_lowered AS low CROSS JOIN headrace_barriers AS b ON b.task = low.task
    WHERE b.remaining = 0
) AND state = 'blocked' AND coalesce(waiting_on, 'approval') = 'approval'

-- name: queues_of_lowered
-- Whom to wake. One text, see `claim`.
SELECT json_group_array(DISTINCT t.queue)
FROM temp.headrace_lowered AS low CROSS JOIN headrace_tasks AS t ON t.id = low.task
WHERE t.state = 'pending' AND t.ready_at IS NOT NULL

-- name: awaited_failures
-- Which kinds of edges lead to these.
SELECT DISTINCT d.upstream, d.kind
FROM json_each(?) AS failed CROSS JOIN headrace_dependencies AS d ON d.upstream = failed.value

-- name: next_release
-- The lowest; there are few.
SELECT upstream, state, after FROM headrace_releases WHERE upstream > 0 ORDER BY upstream LIMIT 1

-- name: part_of_release
-- How many dependents come next, and the last of them. Two edges of one count once.
SELECT count(*), max(part.task) FROM (
    SELECT DISTINCT d.task FROM headrace_dependencies AS d
    WHERE d.upstream = :upstream AND d.task > :after ORDER BY d.task LIMIT :limit
) AS part

-- name: move_release
-- In the transaction that lowered the barriers.
UPDATE headrace_releases SET after = :last WHERE upstream = :upstream

-- name: drop_releases
-- They are through, or run again.
DELETE FROM headrace_releases WHERE upstream IN (SELECT value FROM json_each(?))

-- name: insert_edge
-- Ends with the values of one, see Transaction.insert_all.
INSERT INTO headrace_dependencies (task, place, upstream, kind, input) VALUES (?, ?, ?, ?, ?)

-- name: insert_barrier
-- The same.
INSERT INTO headrace_barriers (task, remaining) VALUES (?, ?)

-- name: jobs_of_tasks
-- Whether an edge may lead to them.
SELECT t.id, t.job FROM headrace_tasks AS t WHERE t.id IN (SELECT value FROM json_each(:ids))
UNION ALL
SELECT h.id, h.job FROM headrace_history AS h WHERE h.id IN (SELECT value FROM json_each(:ids))

-- name: impossible_tasks
-- Of these, the ones that can never run, by what has ended already: the kind of the edge that says most.
SELECT d.task, min(d.kind)
FROM json_each(?) AS new
CROSS JOIN headrace_dependencies AS d ON d.task = new.value
CROSS JOIN headrace_history AS h ON h.id = d.upstream
WHERE (d.kind = 0 AND h.state <> 'completed') OR (d.kind = 2 AND h.state NOT IN ('failed', 'rejected'))
GROUP BY d.task

-- name: count_barriers
-- Anew: what has not ended, and what has, where the release will still come by.
INSERT INTO headrace_barriers (task, remaining)
SELECT low.task, (
    SELECT count(*) FROM headrace_dependencies AS d
    WHERE d.task = low.task AND (
        EXISTS (SELECT 1 FROM headrace_tasks AS t WHERE t.id = d.upstream)
        OR EXISTS (SELECT 1 FROM headrace_releases AS r WHERE r.upstream = d.upstream AND r.after < d.task)
    )
)
FROM temp.headrace_lowered AS low
WHERE true
ON CONFLICT (task) DO UPDATE SET remaining = excluded.remaining

-- name: note_counted
-- Whose barriers are to be counted; those at zero are free.
INSERT INTO temp.headrace_lowered (task, n) SELECT value, 0 FROM json_each(?)

-- name: edges
-- By task and place.
SELECT d.task, d.upstream, d.kind, d.input, d.place
FROM headrace_dependencies AS d WHERE d.task IN (SELECT value FROM json_each(?))
ORDER BY d.task, d.place

-- name: inputs
-- What was ended when the task was freed has stayed, unless somebody runs it again.
SELECT d.input, d.place, d.upstream, coalesce(h.name, t.name), coalesce(h.state, t.state), coalesce(h.codec, t.codec),
    h.result, h.result_ref
FROM headrace_dependencies AS d
LEFT JOIN headrace_history AS h ON h.id = d.upstream
LEFT JOIN headrace_tasks AS t ON t.id = d.upstream AND h.id IS NULL
WHERE d.task = ? AND d.input IS NOT NULL AND coalesce(h.id, t.id) IS NOT NULL
ORDER BY d.input, d.place

-- name: approve
-- It may be claimed once it is due. The age counts from here.
UPDATE headrace_tasks
SET state = 'pending', waiting_on = NULL, ready_at = CASE WHEN eligible_at <= :now THEN :now END,
    eligible_at = max(eligible_at, :now), expires_at = :now + CAST(max_age * 1000000 AS INTEGER)
WHERE id = :task AND state = 'pending_approval'
RETURNING queue, claim_no, attempt

-- name: keep_approval
-- Who decided and when; of the latest decision.
INSERT INTO headrace_checkpoints (task, name, value, claim_no, attempt, created_at)
VALUES (:task, 'approval', :value, :claim_no, :attempt, :now)
ON CONFLICT (task, name) DO UPDATE SET value = excluded.value, created_at = excluded.created_at
