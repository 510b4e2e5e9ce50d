-- name: outline
-- One page of a job's tasks by id, wherever they are now.
SELECT id, name, label, state, reason, critical, waiting_on, started_at / 1000000.0, finished_at / 1000000.0, error
FROM (
    SELECT * FROM (
        SELECT id, name, CASE WHEN options LIKE '%"label"%' THEN options ->> '$.label' END AS label, state, reason,
            critical, waiting_on, started_at, NULL AS finished_at, NULL AS error
        FROM headrace_tasks WHERE job = :job AND id > :after ORDER BY id LIMIT :limit
    )
    UNION ALL
    SELECT * FROM (
        SELECT id, name, CASE WHEN options LIKE '%"label"%' THEN options ->> '$.label' END, state, reason, critical, NULL, started_at, finished_at,
            CASE WHEN state IN ('failed', 'rejected')
                THEN coalesce(error_class, '') || ': ' || coalesce(substr(error_message, 1, 400), '') END
        FROM headrace_history WHERE job = :job AND id > :after ORDER BY id LIMIT :limit
    )
)
ORDER BY id LIMIT :limit

-- name: tally
-- A job's tasks by name and state.
SELECT name, state, sum(n) FROM (
    SELECT name, state, count(*) AS n FROM headrace_tasks WHERE job = :job GROUP BY name, state
    UNION ALL
    SELECT name, state, count(*) FROM headrace_history WHERE job = :job GROUP BY name, state
)
GROUP BY name, state ORDER BY name, state

-- name: bones
-- By the indexes on the job, as few columns as a picture needs: there may be a hundred thousand rows.
SELECT id, name, state, started_at / 1000000.0, NULL FROM headrace_tasks INDEXED BY headrace_tasks_job WHERE job = :job
UNION ALL
SELECT id, name, state, started_at / 1000000.0, finished_at / 1000000.0
FROM headrace_history INDEXED BY headrace_history_job WHERE job = :job
LIMIT :limit

-- name: joints
-- From the tasks of the job to the primary key of the edges, which is in the same order.
SELECT d.task, d.upstream, d.kind
FROM headrace_tasks AS t INDEXED BY headrace_tasks_job CROSS JOIN headrace_dependencies AS d ON d.task = t.id
WHERE t.job = :job
UNION ALL
SELECT d.task, d.upstream, d.kind
FROM headrace_history AS h INDEXED BY headrace_history_job CROSS JOIN headrace_dependencies AS d ON d.task = h.id
WHERE h.job = :job
LIMIT :limit

-- name: labels
-- Where there is one.
SELECT id, options ->> '$.label' FROM (
    SELECT id, options FROM headrace_tasks WHERE id IN (SELECT value FROM json_each(:ids))
    UNION ALL
    SELECT id, options FROM headrace_history WHERE id IN (SELECT value FROM json_each(:ids))
)
WHERE instr(options, '"label"') AND options ->> '$.label' IS NOT NULL

-- name: spans
-- A completed history row whose claim has no row of its own, or only the refused report of another, is that attempt.
SELECT a.task, a.claim_no, a.state, a.charged, a.worker, a.started_at, a.finished_at
FROM headrace_attempts AS a
WHERE a.task IN (SELECT value FROM json_each(:ids)) AND a.state <> 'refused'
UNION ALL
SELECT h.id, h.claim_no, 'succeeded', 1, h.worker, h.started_at, h.finished_at
FROM headrace_history AS h LEFT JOIN headrace_attempts AS a ON a.task = h.id AND a.claim_no = h.claim_no
WHERE h.id IN (SELECT value FROM json_each(:ids)) AND h.state = 'completed' AND coalesce(a.state, 'refused') = 'refused'
ORDER BY 1, 2

-- name: hooks_of_job
-- What is to run when it ends.
SELECT on_success ->> '$.name', on_failure ->> '$.name', hooked_run >= run_no FROM headrace_jobs WHERE id = ?
