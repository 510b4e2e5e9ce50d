-- name: outline
-- One page of a job's tasks by id, wherever they are now.
SELECT id, name, label, state, reason, critical, waiting_on, extract(epoch FROM started_at)::double precision,
       extract(epoch FROM finished_at)::double precision, error
FROM (
    (SELECT t.id, t.name, CASE WHEN t.options LIKE '%"label"%' THEN t.options::json ->> 'label' END AS label, t.state, t.reason,
            t.critical, t.waiting_on, t.started_at, NULL::timestamptz AS finished_at, NULL::text AS error
     FROM headrace.tasks t WHERE t.job = $1::bigint AND t.id > $2::bigint ORDER BY t.id LIMIT $3::integer)
    UNION ALL
    (SELECT h.id, h.name, CASE WHEN h.options LIKE '%"label"%' THEN h.options::json ->> 'label' END, h.state, h.reason,
            h.critical, NULL, h.started_at, h.finished_at,
            CASE WHEN h.state IN ('failed', 'rejected')
                 THEN coalesce(h.error_class, '') || ': ' || coalesce(left(h.error_message, 400), '') END
     FROM headrace.history h WHERE h.job = $1 AND h.id > $2 ORDER BY h.id LIMIT $3)
) AS page
ORDER BY id LIMIT $3;

-- name: tally
-- A job's tasks by name and state.
SELECT name, state, sum(n)::integer FROM (
    SELECT name, state, count(*) AS n FROM headrace.tasks WHERE job = $1::bigint GROUP BY name, state
    UNION ALL
    SELECT name, state, count(*) FROM headrace.history WHERE job = $1 GROUP BY name, state
) AS both_places
GROUP BY name, state ORDER BY name, state;

-- name: hooks_of_job
-- What is to run when it ends.
SELECT on_success::json ->> 'name', on_failure::json ->> 'name', hooked_run >= run_no FROM headrace.jobs WHERE id = $1::bigint;
