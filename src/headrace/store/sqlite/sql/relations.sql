-- name: gates_of_task
-- As they were resolved when it was enqueued.
SELECT t.gates FROM headrace_tasks AS t WHERE t.id = :task
UNION ALL SELECT h.gates FROM headrace_history AS h WHERE h.id = :task

-- name: parents
-- By the primary key of the edges. Each table for itself: of both put together SQLite would read all.
SELECT id, name, label, state, kind, input FROM (
    SELECT d.place AS place, t.id, t.name, CASE WHEN t.options LIKE '%"label"%' THEN t.options ->> '$.label' END AS label, t.state, d.kind, d.input
    FROM headrace_dependencies AS d CROSS JOIN headrace_tasks AS t ON t.id = d.upstream
    WHERE d.task = :task
    UNION ALL
    SELECT d.place, h.id, h.name, CASE WHEN h.options LIKE '%"label"%' THEN h.options ->> '$.label' END AS label, h.state, d.kind, d.input
    FROM headrace_dependencies AS d CROSS JOIN headrace_history AS h ON h.id = d.upstream
    WHERE d.task = :task
) ORDER BY place LIMIT :limit

-- name: children
-- By the index of the edges on what is waited for. Each table for itself, as above.
SELECT id, name, label, state, kind, input FROM (
    SELECT t.id, t.name, CASE WHEN t.options LIKE '%"label"%' THEN t.options ->> '$.label' END AS label, t.state, d.kind, d.input
    FROM headrace_dependencies AS d INDEXED BY headrace_dependencies_upstream CROSS JOIN headrace_tasks AS t ON t.id = d.task
    WHERE d.upstream = :task
    UNION ALL
    SELECT h.id, h.name, CASE WHEN h.options LIKE '%"label"%' THEN h.options ->> '$.label' END AS label, h.state, d.kind, d.input
    FROM headrace_dependencies AS d INDEXED BY headrace_dependencies_upstream CROSS JOIN headrace_history AS h ON h.id = d.task
    WHERE d.upstream = :task
) ORDER BY id LIMIT :limit

-- name: below
-- As `clear` goes down, as far as it is asked for.
WITH RECURSIVE below (id) AS (
    SELECT :task
    UNION
    SELECT d.task FROM below CROSS JOIN headrace_dependencies AS d ON d.upstream = below.id
    LIMIT :limit
)
SELECT t.id, t.name, CASE WHEN t.options LIKE '%"label"%' THEN t.options ->> '$.label' END, t.state
FROM below CROSS JOIN (
    SELECT id, name, options, state FROM headrace_tasks UNION ALL SELECT id, name, options, state FROM headrace_history
) AS t ON t.id = below.id

-- name: fired_by
-- By the index on the time of the fire: the run is written with the task.
SELECT s.name FROM headrace_schedule_runs AS r INDEXED BY headrace_schedule_runs_fired
CROSS JOIN headrace_schedules AS s ON s.id = r.schedule
WHERE r.fired_at BETWEEN :since AND :until AND r.task = :task LIMIT 1
