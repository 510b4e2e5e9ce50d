-- name: parents
-- By the primary key of the edges.
SELECT u.id, u.name, CASE WHEN u.options LIKE '%"label"%' THEN u.options ->> '$.label' END, u.state, d.kind, d.input
FROM headrace_dependencies AS d CROSS JOIN (
    SELECT id, name, options, state FROM headrace_tasks UNION ALL SELECT id, name, options, state FROM headrace_history
) AS u ON u.id = d.upstream
WHERE d.task = :task ORDER BY d.place LIMIT :limit

-- name: children
-- By the index of the edges on what is waited for.
SELECT l.id, l.name, CASE WHEN l.options LIKE '%"label"%' THEN l.options ->> '$.label' END, l.state, d.kind, d.input
FROM headrace_dependencies AS d INDEXED BY headrace_dependencies_upstream CROSS JOIN (
    SELECT id, name, options, state FROM headrace_tasks UNION ALL SELECT id, name, options, state FROM headrace_history
) AS l ON l.id = d.task
WHERE d.upstream = :task ORDER BY d.task LIMIT :limit

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
