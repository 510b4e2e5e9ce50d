-- name: gates_of_task
-- As they were resolved when it was enqueued.
SELECT t.gates FROM headrace.tasks t WHERE t.id = $1::bigint
UNION ALL SELECT h.gates FROM headrace.history h WHERE h.id = $1::bigint;

-- name: parents
-- By the primary key of the edges; the page first, then the tasks.
SELECT u.id, u.name, CASE WHEN u.options LIKE '%"label"%' THEN u.options::json ->> 'label' END, u.state, page.kind, page.input
FROM (
    SELECT d.upstream, d.kind, d.input, d.place FROM headrace.dependencies d WHERE d.task = $1::bigint
    ORDER BY d.place LIMIT $2::integer
) AS page CROSS JOIN LATERAL (
    SELECT t.id, t.name, t.options, t.state FROM headrace.tasks t WHERE t.id = page.upstream
    UNION ALL SELECT h.id, h.name, h.options, h.state FROM headrace.history h WHERE h.id = page.upstream
) AS u
ORDER BY page.place;

-- name: children
-- By the index of the edges on what is waited for.
SELECT l.id, l.name, CASE WHEN l.options LIKE '%"label"%' THEN l.options::json ->> 'label' END, l.state, page.kind, page.input
FROM (
    SELECT d.task, d.kind, d.input FROM headrace.dependencies d WHERE d.upstream = $1::bigint
    ORDER BY d.upstream, d.task LIMIT $2::integer
) AS page CROSS JOIN LATERAL (
    SELECT t.id, t.name, t.options, t.state FROM headrace.tasks t WHERE t.id = page.task
    UNION ALL SELECT h.id, h.name, h.options, h.state FROM headrace.history h WHERE h.id = page.task
) AS l
ORDER BY page.task;

-- name: below
-- As `clear` goes down, as far as it is asked for: rows of the recursion are made as they are fetched.
WITH RECURSIVE below(id) AS (
    VALUES ($1::bigint)
    UNION
    SELECT d.task FROM below b JOIN headrace.dependencies d ON d.upstream = b.id
), nearest AS MATERIALIZED (SELECT b.id FROM below b LIMIT $2::integer)
SELECT t.id, t.name, CASE WHEN t.options LIKE '%"label"%' THEN t.options::json ->> 'label' END, t.state
FROM nearest CROSS JOIN LATERAL (
    SELECT l.id, l.name, l.options, l.state FROM headrace.tasks l WHERE l.id = nearest.id
    UNION ALL SELECT h.id, h.name, h.options, h.state FROM headrace.history h WHERE h.id = nearest.id
) AS t;

-- name: fired_by
-- By the index on the time of the fire: the run is written with the task.
SELECT s.name FROM headrace.schedule_runs r JOIN headrace.schedules s ON s.id = r.schedule
WHERE r.fired_at BETWEEN $2::timestamptz - interval '1 minute' AND $2::timestamptz + interval '1 minute' AND r.task = $1::bigint
LIMIT 1;
