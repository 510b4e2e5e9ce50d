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

-- name: hooks_of_job
-- What is to run when it ends.
SELECT on_success ->> '$.name', on_failure ->> '$.name', hooked_run >= run_no FROM headrace_jobs WHERE id = ?
