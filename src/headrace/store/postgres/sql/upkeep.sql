-- name: overdue_tasks
-- Pending tasks whose age is over.
SELECT t.id FROM headrace.tasks t
WHERE t.expires_at <= (SELECT clock_timestamp()) AND t.state = 'pending'
ORDER BY t.expires_at LIMIT $1 FOR UPDATE SKIP LOCKED;

-- name: end_tasks
-- Moves tasks to history without a report.
SELECT headrace.end_tasks_v1($1, $2, $3, $4, $5);

-- name: ended
-- Counters, keys and slots of tasks that have ended.
SELECT headrace.ended_v1($1);

-- name: overdue_jobs
-- Open jobs past their deadline.
SELECT j.id FROM headrace.jobs j
WHERE j.deadline_at <= (SELECT clock_timestamp()) AND j.state IN ('pending', 'running')
ORDER BY j.deadline_at LIMIT $1;

-- name: late_additions
-- Ended jobs to which a user's transaction added tasks.
SELECT DISTINCT a.job FROM headrace.job_additions a JOIN headrace.jobs j ON j.id = a.job
WHERE j.state NOT IN ('pending', 'running') LIMIT $1;

-- name: drop_late_additions
-- Cancels what came too late for its job.
SELECT headrace.drop_late_additions_v1($1);

-- name: unanswered
-- Cancellations that their workers did not answer in time.
SELECT t.id FROM headrace.tasks t
WHERE t.worker IS NOT NULL AND t.state = 'cancelling'
  AND t.cancelling_at <= clock_timestamp() - make_interval(secs => $1::double precision)
ORDER BY t.id LIMIT $2 FOR UPDATE SKIP LOCKED;

-- name: waited_for
-- The gates after $2 for which tasks are parked, each with the gates of its first waiter: one index probe a key.
WITH RECURSIVE places AS (
    -- An approval and events (`event:…`), which tasks wait for as well, come before the gates (`limit:…`, `order:…`).
    (SELECT t.waiting_on AS key FROM headrace.tasks t WHERE t.waiting_on > greatest($2::text, 'f') ORDER BY t.waiting_on LIMIT 1)
    UNION ALL
    SELECT (SELECT t.waiting_on FROM headrace.tasks t WHERE t.waiting_on > p.key ORDER BY t.waiting_on LIMIT 1)
    FROM places p WHERE p.key IS NOT NULL
)
SELECT p.key, (SELECT t.gates FROM headrace.tasks t WHERE t.waiting_on = p.key ORDER BY t.order_at, t.id LIMIT 1) AS gates
FROM places p WHERE p.key IS NOT NULL LIMIT $1;

-- name: drop_stale_slots
-- Slots of these gates whose claim is over; nobody should have left one.
DELETE FROM headrace.slots s
WHERE s.key = ANY ($1::text[]) AND NOT EXISTS (
    SELECT FROM headrace.tasks t WHERE t.id = s.task AND t.claim_no = s.claim_no AND t.worker IS NOT NULL
);

-- name: wake_gates
-- Readies whoever waits for these gates, as far as there is room.
SELECT headrace.wake_gates_v1($1);

-- name: prune_tasks
-- Removes old history with everything that belongs to it. The tasks of a job stay until the job is as old as they are:
-- its fate and its retry ask for them. Then they go batch by batch, and a note says that the job's counters know of more.
-- What a task that has not ended waits for, or waited for, stays as well.
-- The oldest of each state, then of all: the index on the state is the one in the order of their ends.
WITH clock AS MATERIALIZED (
    SELECT clock_timestamp() - make_interval(secs => $1::double precision) AS until
), oldest AS MATERIALIZED (
    SELECT found.id FROM unnest($3::text[]) AS s(state) CROSS JOIN LATERAL (
        SELECT h.id, h.finished_at FROM headrace.history h
        WHERE h.state = ANY (ARRAY[s.state]) AND h.finished_at < (SELECT until FROM clock) AND NOT EXISTS (
            SELECT FROM headrace.jobs j
            WHERE j.id = h.job AND (j.completed_at IS NULL OR j.completed_at >= (SELECT until FROM clock))
        ) AND NOT EXISTS (
            -- By ANY: see prune_results.
            SELECT FROM headrace.dependencies d JOIN headrace.tasks t ON t.id = ANY (ARRAY[d.task])
            WHERE d.upstream = ANY (ARRAY[h.id])
        )
        ORDER BY h.state, h.finished_at LIMIT $2
    ) AS found
    ORDER BY found.finished_at LIMIT $2
), old AS MATERIALIZED (
    SELECT h.id, h.job FROM headrace.history h WHERE h.id = ANY (ARRAY(SELECT oldest.id FROM oldest))
    FOR UPDATE SKIP LOCKED
), notes AS (
    INSERT INTO headrace.meta (key, value)
    SELECT DISTINCT 'pruned job ' || old.job, 'some of its tasks' FROM old WHERE old.job IS NOT NULL ORDER BY 1
    ON CONFLICT (key) DO NOTHING
), attempts AS (
    DELETE FROM headrace.attempts a USING old WHERE a.task = old.id
), logs AS (
    DELETE FROM headrace.logs l USING old WHERE l.task = old.id
), steps AS (
    DELETE FROM headrace.checkpoints c USING old WHERE c.task = old.id
), waits AS (
    DELETE FROM headrace.waits w USING old WHERE w.task = old.id
), edges AS (
    DELETE FROM headrace.dependencies d USING old WHERE d.task = old.id
), barriers AS (
    DELETE FROM headrace.barriers b USING old WHERE b.task = old.id
), names AS (
    DELETE FROM headrace.keys k USING old WHERE k.task = old.id AND k.expires_at = to_timestamp(0)
)
DELETE FROM headrace.history h USING old WHERE h.id = old.id RETURNING h.id, h.result_ref;

-- name: prune_results
-- Drops results whose time to live is over; that there was one stays known. Not while a task that has not ended may ask
-- for it: one that waits for it, or has called it. The reference to what is kept elsewhere comes back.
WITH old AS (
    SELECT h.id, h.result_ref FROM headrace.history h
    WHERE h.result_expires_at <= (SELECT clock_timestamp()) AND NOT EXISTS (
        -- By ANY: a look for each of the oldest, whatever the statistics say of the rest.
        SELECT FROM headrace.dependencies d JOIN headrace.tasks t ON t.id = ANY (ARRAY[d.task])
        WHERE d.upstream = ANY (ARRAY[h.id])
    )
    ORDER BY h.result_expires_at LIMIT $1 FOR UPDATE SKIP LOCKED
)
UPDATE headrace.history h SET result = NULL, result_ref = NULL, result_expires_at = NULL, result_expired = true
FROM old WHERE h.id = old.id RETURNING h.id, old.result_ref;

-- name: prune_keys
-- Removes keys past their expiry. At the epoch stand the names kept for a manual retry, which go with their task.
WITH old AS (
    SELECT k.scope, k.key FROM headrace.keys k
    WHERE k.expires_at > to_timestamp(0) AND k.expires_at <= (SELECT clock_timestamp())
    ORDER BY k.expires_at LIMIT $1 FOR UPDATE SKIP LOCKED
)
DELETE FROM headrace.keys k USING old WHERE k.scope = old.scope AND k.key = old.key RETURNING k.task;

-- name: prune_workers
-- Removes workers that stopped long ago and hold nothing.
DELETE FROM headrace.workers w
WHERE w.id IN (
    SELECT x.id FROM headrace.workers x
    WHERE x.state = 'stopped' AND x.stopped_at < clock_timestamp() - make_interval(secs => $1::double precision) LIMIT $2
) AND NOT EXISTS (SELECT FROM headrace.tasks t WHERE t.worker = w.id)
RETURNING w.id;

-- name: prune_job_events
-- Removes events of jobs that ended long ago and whose tasks are gone, some at a time: a job may have any number of them.
-- The oldest first, so that what is left has no gap and tells how the job ended.
WITH old AS MATERIALIZED (
    SELECT j.id FROM headrace.jobs j
    WHERE j.state NOT IN ('pending', 'running')
      AND j.completed_at < clock_timestamp() - make_interval(secs => $1::double precision)
      AND NOT EXISTS (SELECT FROM headrace.history h WHERE h.job = j.id)
      AND NOT EXISTS (SELECT FROM headrace.tasks t WHERE t.job = j.id)
      AND NOT EXISTS (SELECT FROM headrace.job_additions a WHERE a.job = j.id)
    LIMIT $2
)
DELETE FROM headrace.job_events e WHERE e.ctid = ANY (ARRAY(
    SELECT own.place FROM old CROSS JOIN LATERAL (
        SELECT x.ctid AS place FROM headrace.job_events x WHERE x.job = old.id ORDER BY x.job, x.seq LIMIT $2
    ) own LIMIT $2
)) RETURNING e.job;

-- name: prune_jobs
-- Removes jobs that ended long ago and whose tasks and events are gone.
WITH old AS MATERIALIZED (
    SELECT j.id FROM headrace.jobs j
    WHERE j.state NOT IN ('pending', 'running')
      AND j.completed_at < clock_timestamp() - make_interval(secs => $1::double precision)
      AND NOT EXISTS (SELECT FROM headrace.history h WHERE h.job = j.id)
      AND NOT EXISTS (SELECT FROM headrace.tasks t WHERE t.job = j.id)
      AND NOT EXISTS (SELECT FROM headrace.job_additions a WHERE a.job = j.id)
      AND NOT EXISTS (SELECT FROM headrace.job_events e WHERE e.job = j.id)
    LIMIT $2
), counts AS (
    DELETE FROM headrace.job_counts c USING old WHERE c.job = old.id
), lines AS (
    DELETE FROM headrace.job_lines n USING old WHERE n.job = old.id
), notes AS (
    DELETE FROM headrace.meta m USING old WHERE m.key = 'pruned job ' || old.id
)
DELETE FROM headrace.jobs j USING old WHERE j.id = old.id RETURNING j.id;

-- name: prune_outcomes
-- Removes counts of minutes long past.
DELETE FROM headrace.outcomes WHERE minute < clock_timestamp() - make_interval(secs => $1::double precision);

-- name: unused_gates
-- Gates that have had nothing to remember for a day, held still. One that is in use is made anew when it is missing.
SELECT g.key FROM headrace.gates g WHERE g.full_at < clock_timestamp() - interval '1 day'
ORDER BY g.key LIMIT $1 FOR UPDATE SKIP LOCKED;

-- name: prune_gates
-- Under their locks: nobody passes them, parks at them or frees them meanwhile.
DELETE FROM headrace.gates g
WHERE g.key = ANY ($1::text[])
  AND NOT EXISTS (SELECT FROM headrace.slots s WHERE s.key = g.key)
  AND NOT EXISTS (SELECT FROM headrace.tasks t WHERE t.waiting_on = g.key);

-- name: dead_letter_depth
-- Dead letters, up to a cap, in the index that holds nothing else.
SELECT count(*)::integer FROM (
    SELECT FROM headrace.history h WHERE h.dead_letter AND h.state = 'failed' LIMIT $1::integer
) AS counted;

-- name: retry_depth
-- Ready tasks of a queue in the retry lane, up to a cap; one range of the ready index per pool.
SELECT coalesce(sum(n), 0)::integer
FROM unnest(ARRAY['coroutine', 'child', 'thread', 'command', 'runner']) AS p(pool)
CROSS JOIN LATERAL (
    SELECT count(*) AS n FROM (
        SELECT FROM headrace.tasks t
        WHERE t.queue = $1 AND t.pool = p.pool AND t.lane = 1 AND t.state = 'pending' AND t.ready_at IS NOT NULL
        LIMIT $2::integer
    ) AS found
) AS counted;

-- name: count_outcomes
-- Adds to this minute's counts.
INSERT INTO headrace.outcomes AS o (worker, queue, name, minute, outcome, n)
SELECT s.worker, s.queue, s.name, date_trunc('minute', clock_timestamp()), s.outcome, s.n
FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::bigint[]) AS s(worker, queue, name, outcome, n)
ON CONFLICT (worker, queue, name, minute, outcome) DO UPDATE SET n = o.n + excluded.n;

-- name: lead
-- Takes or renews a leadership; no row while another holds it.
INSERT INTO headrace.leaders AS l (role, worker, expires_at)
VALUES ($1, $2, clock_timestamp() + make_interval(secs => $3::double precision))
ON CONFLICT (role) DO UPDATE SET worker = excluded.worker, expires_at = excluded.expires_at
WHERE l.worker = excluded.worker OR l.expires_at <= clock_timestamp()
RETURNING l.worker;

-- name: prune_tokens
-- Removes those that nobody could use for so long.
WITH clock AS MATERIALIZED (
    SELECT clock_timestamp() - make_interval(secs => $1::double precision) AS until
)
DELETE FROM headrace.tokens WHERE id IN (
    SELECT t.id FROM headrace.tokens t, clock WHERE t.expires_at < clock.until OR t.revoked_at < clock.until
    LIMIT $2 FOR UPDATE OF t SKIP LOCKED
) RETURNING id;

-- name: prune_audit
-- Removes the oldest entries: ids rise with the time.
WITH oldest AS MATERIALIZED (
    SELECT a.id, a.at FROM headrace.audit a ORDER BY a.id LIMIT $2
)
DELETE FROM headrace.audit WHERE id IN (
    SELECT o.id FROM oldest o WHERE o.at < clock_timestamp() - make_interval(secs => $1::double precision)
) RETURNING id;

-- name: prunable
-- What all calls of prune together would remove: the same conditions as theirs.
WITH clock AS MATERIALIZED (
    SELECT clock_timestamp() AS now, clock_timestamp() - make_interval(secs => $1::double precision) AS until
)
SELECT
    (
        SELECT count(*) FROM headrace.history h
        WHERE h.finished_at < clock.until AND NOT EXISTS (
            SELECT FROM headrace.jobs j
            WHERE j.id = h.job AND (j.completed_at IS NULL OR j.completed_at >= clock.until)
        ) AND NOT EXISTS (
            SELECT FROM headrace.dependencies d JOIN headrace.tasks t ON t.id = d.task WHERE d.upstream = h.id
        )
    ),
    (
        SELECT count(*) FROM headrace.history h
        WHERE h.result_expires_at <= clock.now AND h.finished_at >= clock.until AND NOT EXISTS (
            SELECT FROM headrace.dependencies d JOIN headrace.tasks t ON t.id = d.task
            WHERE d.upstream = h.id
        )
    ),
    (
        SELECT count(*) FROM headrace.workers w
        WHERE w.state = 'stopped' AND w.stopped_at < clock.until
          AND NOT EXISTS (SELECT FROM headrace.tasks t WHERE t.worker = w.id)
    ),
    (SELECT count(*) FROM headrace.keys k WHERE k.expires_at > to_timestamp(0) AND k.expires_at <= clock.now),
    (
        SELECT count(*) FROM headrace.jobs j
        WHERE j.state NOT IN ('pending', 'running') AND j.completed_at < clock.until
          AND NOT EXISTS (SELECT FROM headrace.history h WHERE h.job = j.id AND h.finished_at >= clock.until)
          AND NOT EXISTS (SELECT FROM headrace.tasks t WHERE t.job = j.id)
          AND NOT EXISTS (SELECT FROM headrace.job_additions a WHERE a.job = j.id)
    ),
    (SELECT count(*) FROM headrace.events e WHERE e.created_at < clock.until),
    (SELECT count(*) FROM headrace.tokens t WHERE t.expires_at < clock.until OR t.revoked_at < clock.until),
    (SELECT count(*) FROM headrace.audit a WHERE a.at < clock.now - make_interval(secs => $2::double precision))
FROM clock;
