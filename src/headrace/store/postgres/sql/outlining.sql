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

-- name: bones
-- As few columns as a picture needs, each as one array: there may be a hundred thousand rows, and the driver makes an
-- object of each.
SELECT coalesce(array_agg(b.id), '{}'), coalesce(array_agg(b.name), '{}'), coalesce(array_agg(b.state), '{}'),
       coalesce(array_agg(extract(epoch FROM b.started_at)::double precision), '{}'),
       coalesce(array_agg(extract(epoch FROM b.finished_at)::double precision), '{}')
FROM (
    SELECT t.id, t.name, t.state, t.started_at, NULL::timestamptz AS finished_at FROM headrace.tasks t WHERE t.job = $1::bigint
    UNION ALL
    SELECT h.id, h.name, h.state, h.started_at, h.finished_at FROM headrace.history h WHERE h.job = $1
    LIMIT $2::integer
) AS b;

-- name: joints
-- In the same way. Every edge of a task leads to one of the same job.
SELECT coalesce(array_agg(e.task), '{}'), coalesce(array_agg(e.upstream), '{}'), coalesce(array_agg(e.kind), '{}')
FROM (
    SELECT d.task, d.upstream, d.kind FROM headrace.tasks t JOIN headrace.dependencies d ON d.task = t.id
    WHERE t.job = $1::bigint
    UNION ALL
    SELECT d.task, d.upstream, d.kind FROM headrace.history h JOIN headrace.dependencies d ON d.task = h.id
    WHERE h.job = $1
    LIMIT $2::integer
) AS e;

-- name: labels
-- Where there is one.
SELECT found.id, found.options::json ->> 'label' FROM (
    SELECT t.id, t.options FROM headrace.tasks t WHERE t.id = ANY ($1::bigint[])
    UNION ALL
    SELECT h.id, h.options FROM headrace.history h WHERE h.id = ANY ($1)
) AS found
WHERE strpos(found.options, '"label"') > 0 AND found.options::json ->> 'label' IS NOT NULL;

-- name: spans
-- A completed history row whose claim has no row of its own, or only the refused report of another, is that attempt.
SELECT a.task, a.claim_no, a.state, a.charged, a.worker, a.started_at, a.finished_at FROM headrace.attempts a
WHERE a.task = ANY ($1::bigint[]) AND a.state <> 'refused'
UNION ALL
SELECT h.id, h.claim_no, 'succeeded', true, h.worker, h.started_at, h.finished_at
FROM headrace.history h LEFT JOIN headrace.attempts a ON a.task = h.id AND a.claim_no = h.claim_no
WHERE h.id = ANY ($1) AND h.state = 'completed' AND coalesce(a.state, 'refused') = 'refused'
ORDER BY 1, 2;

-- name: hooks_of_job
-- What is to run when it ends.
SELECT on_success::json ->> 'name', on_failure::json ->> 'name', hooked_run >= run_no FROM headrace.jobs WHERE id = $1::bigint;
