-- name: schedules
-- By name: all of them ($1 NULL), or those of these names and whatever an app ($2) declared.
SELECT s.id, s.name, s.cadence, s.task, s.catch_up, s.grace, s.overlap, s.jitter, s.paused, s.declared_by, s.revision,
       s.cursor, s.next_at, s.problem, s.created_at, s.changed_at, s.declaration
FROM headrace.schedules s
WHERE $1::text[] IS NULL OR s.name = ANY ($1) OR s.declared_by = $2::text
ORDER BY s.name COLLATE "C";

-- name: lock_schedules
-- Whoever writes schedules waits for whoever else does: two that make the same one at once would both find none.
LOCK TABLE headrace.schedules IN SHARE ROW EXCLUSIVE MODE;

-- name: due_schedules
-- Longest due first, in every row the present instant and when the next one is due that is not due yet. A row without
-- an id says these two alone. Two looks into one index. Without these ids ($2) in these revisions ($3).
SELECT instant.at AS now,
       (
           SELECT n.next_at FROM headrace.schedules n
           WHERE NOT n.paused AND n.problem IS NULL AND n.next_at IS NOT NULL AND n.next_at > instant.at
           ORDER BY n.next_at LIMIT 1
       ) AS following,
       due.*
-- OFFSET, so that the clock is read once.
FROM (SELECT clock_timestamp() AS at OFFSET 0) AS instant
LEFT JOIN LATERAL (
    SELECT s.id, s.name, s.cadence, s.task, s.catch_up, s.grace, s.overlap, s.jitter, s.paused, s.declared_by,
           s.revision, s.cursor, s.next_at, s.problem, s.created_at, s.changed_at, s.declaration
    FROM headrace.schedules s
    WHERE NOT s.paused AND s.problem IS NULL AND s.next_at IS NOT NULL AND s.next_at <= instant.at
      AND NOT EXISTS (
          SELECT FROM unnest($2::bigint[], $3::integer[]) AS u(id, revision) WHERE u.id = s.id AND u.revision = s.revision
      )
    ORDER BY s.next_at LIMIT $1
) AS due ON true
ORDER BY due.next_at;

-- name: insert_schedule
-- Under the lock, where nobody else has made it meanwhile.
INSERT INTO headrace.schedules (
    id, name, cadence, task, catch_up, grace, overlap, jitter, paused, declared_by, revision, cursor, next_at, problem,
    created_at, changed_at, declaration
) VALUES (nextval('headrace.ids'), $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16);

-- name: update_schedule
-- All that a change may touch; it was read under the lock.
UPDATE headrace.schedules
SET cadence = $2, task = $3, catch_up = $4, grace = $5, overlap = $6, jitter = $7, revision = $8, cursor = $9,
    next_at = $10, problem = $11, changed_at = $12, declaration = $13
WHERE id = $1;

-- name: remove_schedules
-- Its runs are nobody's from now on, since no other gets its id, and go with their age.
DELETE FROM headrace.schedules WHERE id = ANY ($1::bigint[]);

-- name: remove_schedule
-- The same by name.
DELETE FROM headrace.schedules WHERE name = $1 RETURNING id;

-- name: pause_schedule
-- A decision about it that was made before is void.
UPDATE headrace.schedules SET paused = true, revision = revision + 1, changed_at = clock_timestamp()
WHERE name = $1 AND NOT paused;

-- name: resume_schedule
-- The ticks of the pause are behind the cursor.
UPDATE headrace.schedules s
SET paused = false, revision = s.revision + 1, cursor = instant.at, next_at = instant.at, changed_at = instant.at
FROM (SELECT clock_timestamp() AS at OFFSET 0) AS instant
WHERE s.name = $1 AND s.paused;

-- name: set_schedule_aside
-- It leaves the index of what is due.
UPDATE headrace.schedules SET problem = $3 WHERE id = $1 AND revision = $2 RETURNING id;

-- name: move_cursors
-- Of schedules of which no tick fires, many at once. One that somebody else holds is being decided about.
WITH held AS MATERIALIZED (
    SELECT s.id FROM headrace.schedules s WHERE s.id = ANY ($1::bigint[]) FOR UPDATE SKIP LOCKED
)
UPDATE headrace.schedules AS s SET cursor = f.new_cursor, next_at = f.next_at
FROM held JOIN unnest($1::bigint[], $2::integer[], $3::timestamptz[], $4::timestamptz[], $5::timestamptz[])
    AS f(id, revision, cursor, new_cursor, next_at) ON f.id = held.id
WHERE s.id = f.id AND s.revision = f.revision AND s.cursor = f.cursor AND NOT s.paused AND s.problem IS NULL;

-- name: move_cursor
-- One of many schedulers moves it, and holds the row until its fires are written.
UPDATE headrace.schedules SET cursor = $4, next_at = $5
WHERE id = $1 AND revision = $2 AND cursor = $3 AND NOT paused AND problem IS NULL
RETURNING task, overlap, clock_timestamp() AS now;

-- name: lock_schedule
-- By name, held still for a manual run, or for a change of what somebody read.
SELECT s.id, s.name, s.cadence, s.task, s.catch_up, s.grace, s.overlap, s.jitter, s.paused, s.declared_by, s.revision,
       s.cursor, s.next_at, s.problem, s.created_at, s.changed_at, s.declaration, clock_timestamp() AS now
FROM headrace.schedules s WHERE s.name = $1 FOR UPDATE;

-- name: open_runs
-- Those nobody has found finished yet, with the state of their tasks. Those whose task is over are closed.
WITH found AS MATERIALIZED (
    SELECT r.tick, r.manual, r.task, t.state
    FROM headrace.schedule_runs r LEFT JOIN headrace.tasks t ON t.id = r.task
    WHERE r.schedule = $1 AND r.open
), closed AS (
    UPDATE headrace.schedule_runs r SET open = false FROM found f
    WHERE f.state IS NULL AND r.schedule = $1 AND r.tick = f.tick AND r.manual = f.manual
)
SELECT f.task, f.state FROM found f WHERE f.state IS NOT NULL;

-- name: has_runs
-- Which of these ticks were fired before: they come back with a cursor that was set back (a restored backup, a clock, a
-- change that was undone).
SELECT r.tick FROM headrace.schedule_runs r WHERE r.schedule = $1 AND r.tick = ANY ($2::timestamptz[]) AND NOT r.manual;

-- name: manual_tick
-- Two that are asked for in one instant are two.
SELECT coalesce(max(r.tick) + interval '1 microsecond', $2) FROM headrace.schedule_runs r
WHERE r.schedule = $1 AND r.manual AND r.tick >= $2::timestamptz;

-- name: insert_runs_of_schedule
-- What was left out has no task.
INSERT INTO headrace.schedule_runs (schedule, tick, manual, task, fired_at, open)
SELECT $1, run.tick, $2::boolean, run.task, $3::timestamptz, run.task IS NOT NULL
FROM unnest($4::timestamptz[], $5::bigint[]) AS run(tick, task);

-- name: schedule_runs
-- Newest first; the page first, then the tasks of its runs.
SELECT page.tick, page.manual, page.task, page.fired_at, coalesce(t.state, h.state) AS state
FROM (
    SELECT r.tick, r.manual, r.task, r.fired_at FROM headrace.schedule_runs r
    WHERE r.schedule = $1 AND r.tick < $2::timestamptz
    ORDER BY r.tick DESC, r.manual DESC LIMIT $3
) AS page
LEFT JOIN headrace.tasks t ON t.id = page.task
LEFT JOIN headrace.history h ON h.id = page.task
ORDER BY page.tick DESC, page.manual DESC;

-- name: last_runs
-- Of each schedule, newest first.
SELECT s.id AS schedule, page.tick, page.manual, page.task, page.fired_at, coalesce(t.state, h.state) AS state
FROM unnest($1::bigint[]) AS s(id) CROSS JOIN LATERAL (
    SELECT r.tick, r.manual, r.task, r.fired_at FROM headrace.schedule_runs r
    WHERE r.schedule = s.id ORDER BY r.tick DESC, r.manual DESC LIMIT $2::integer
) AS page
LEFT JOIN headrace.tasks t ON t.id = page.task
LEFT JOIN headrace.history h ON h.id = page.task
ORDER BY s.id, page.tick DESC, page.manual DESC;

-- name: prune_schedule_runs
-- Oldest first; those whose task is unfinished stay.
WITH gone AS (
    DELETE FROM headrace.schedule_runs AS r USING (
        SELECT old.schedule, old.tick, old.manual FROM headrace.schedule_runs old
        WHERE old.fired_at < (SELECT clock_timestamp() - make_interval(secs => $1::double precision))
          AND NOT EXISTS (SELECT FROM headrace.tasks t WHERE t.id = old.task)
        ORDER BY old.fired_at LIMIT $2 FOR UPDATE SKIP LOCKED
    ) AS old
    WHERE r.schedule = old.schedule AND r.tick = old.tick AND r.manual = old.manual
    RETURNING r.tick
)
SELECT count(*) FROM gone;
