-- name: schedules
-- All of them, by name.
SELECT id, name, cadence, task, catch_up, grace, overlap, jitter, paused, declared_by, revision, cursor, next_at, problem,
    created_at, changed_at, declaration
FROM headrace_schedules ORDER BY name

-- name: schedules_named
-- Those of an array of names.
SELECT id, name, cadence, task, catch_up, grace, overlap, jitter, paused, declared_by, revision, cursor, next_at, problem,
    created_at, changed_at, declaration
FROM headrace_schedules WHERE name IN (SELECT value FROM json_each(?))

-- name: schedules_declared
-- The same, and whatever an app declared before.
SELECT id, name, cadence, task, catch_up, grace, overlap, jitter, paused, declared_by, revision, cursor, next_at, problem,
    created_at, changed_at, declaration
FROM headrace_schedules WHERE name IN (SELECT value FROM json_each(:names)) OR declared_by = :declared_by

-- name: due_schedules
-- Longest due first. Word for word the predicate of the index. Once the ledger has moved, its schedules fire there.
-- Without an array of "id:revision".
SELECT id, name, cadence, task, catch_up, grace, overlap, jitter, paused, declared_by, revision, cursor, next_at, problem,
    created_at, changed_at, declaration
FROM headrace_schedules INDEXED BY headrace_schedules_due
WHERE NOT paused AND problem IS NULL AND next_at IS NOT NULL AND next_at <= :now
    AND NOT EXISTS (SELECT 1 FROM headrace_meta WHERE key = 'moved_to')
    AND id || ':' || revision NOT IN (SELECT value FROM json_each(:without))
ORDER BY next_at LIMIT :limit

-- name: next_schedule
-- When the next one is due that is not due yet.
SELECT min(next_at) FROM headrace_schedules INDEXED BY headrace_schedules_due
WHERE NOT paused AND problem IS NULL AND next_at IS NOT NULL AND next_at > :now

-- name: insert_schedule
-- Under the write lock, where nobody else has made it meanwhile.
INSERT INTO headrace_schedules (
    id, name, cadence, task, catch_up, grace, overlap, jitter, paused, declared_by, revision, cursor, next_at, problem,
    created_at, changed_at, declaration
) VALUES (
    :id, :name, :cadence, :task, :catch_up, :grace, :overlap, :jitter, :paused, :declared_by, :revision, :cursor,
    :next_at, :problem, :created_at, :changed_at, :declaration
)

-- name: update_schedule
-- All that a change may touch; it was read in this very transaction.
UPDATE headrace_schedules
SET cadence = :cadence, task = :task, catch_up = :catch_up, grace = :grace, overlap = :overlap, jitter = :jitter,
    revision = :revision, cursor = :cursor, next_at = :next_at, problem = :problem, changed_at = :changed_at,
    declaration = :declaration
WHERE id = :id

-- name: remove_schedules
-- Its runs are nobody's from now on, since no other gets its id, and go with their age.
DELETE FROM headrace_schedules WHERE id IN (SELECT value FROM json_each(?))

-- name: remove_schedule
-- The same by name.
DELETE FROM headrace_schedules WHERE name = ?

-- name: pause_schedule
-- A decision about it that was made before is void.
UPDATE headrace_schedules SET paused = 1, revision = revision + 1, changed_at = :now WHERE name = :name AND NOT paused

-- name: resume_schedule
-- The ticks of the pause are behind the cursor.
UPDATE headrace_schedules SET paused = 0, revision = revision + 1, cursor = :now, next_at = :now, changed_at = :now
WHERE name = :name AND paused

-- name: set_schedule_aside
-- It leaves the index of what is due.
UPDATE headrace_schedules SET problem = :problem WHERE id = :id AND revision = :revision

-- name: move_cursor
-- One of many schedulers moves it; none, once the ledger has moved.
UPDATE headrace_schedules SET cursor = :new_cursor, next_at = :next_at
WHERE id = :id AND revision = :revision AND cursor = :cursor AND NOT paused AND problem IS NULL
    AND NOT EXISTS (SELECT 1 FROM headrace_meta WHERE key = 'moved_to')
RETURNING task, overlap

-- name: open_runs
-- Those nobody has found finished yet, with the state of their tasks; NULL: it is over.
SELECT r.task, t.state
FROM headrace_schedule_runs AS r INDEXED BY headrace_schedule_runs_open
LEFT JOIN headrace_tasks AS t ON t.id = r.task
WHERE r.schedule = ? AND r.open

-- name: close_runs
-- Of the tasks that are over.
UPDATE headrace_schedule_runs INDEXED BY headrace_schedule_runs_open SET open = 0
WHERE schedule = :schedule AND open AND task IN (SELECT value FROM json_each(:tasks))

-- name: has_run
-- A tick comes back with a cursor that was set back: a restored backup, a clock, a change that was undone.
SELECT 1 FROM headrace_schedule_runs WHERE schedule = ? AND tick = ? AND NOT manual

-- name: manual_tick
-- Two that are asked for in one instant are two.
SELECT coalesce(max(tick) + 1, :now) FROM headrace_schedule_runs WHERE schedule = :schedule AND manual AND tick >= :now

-- name: insert_run_of_schedule
-- What was left out has no task.
INSERT INTO headrace_schedule_runs (schedule, tick, manual, task, fired_at, open) VALUES (?, ?, ?, ?, ?, ?)

-- name: schedule_runs
-- Newest first; the page first, then the tasks of its runs.
SELECT page.tick, page.manual, page.task, page.fired_at, coalesce(t.state, h.state)
FROM (
    SELECT tick, manual, task, fired_at FROM headrace_schedule_runs
    WHERE schedule = :schedule AND tick < :before
    ORDER BY tick DESC, manual DESC LIMIT :limit
) AS page
LEFT JOIN headrace_tasks AS t ON t.id = page.task
LEFT JOIN headrace_history AS h ON h.id = page.task AND t.id IS NULL
ORDER BY page.tick DESC, page.manual DESC

-- name: prune_schedule_runs
-- Oldest first; those whose task is unfinished stay.
DELETE FROM headrace_schedule_runs WHERE rowid IN (
    SELECT r.rowid FROM headrace_schedule_runs AS r INDEXED BY headrace_schedule_runs_fired
    WHERE r.fired_at < :until AND NOT EXISTS (SELECT 1 FROM headrace_tasks AS t WHERE t.id = r.task)
    ORDER BY r.fired_at LIMIT :limit
)
