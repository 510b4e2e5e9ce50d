-- name: live_window
-- How many there are below an id, up to so many, and the lowest of them.
SELECT count(*), min(id) FROM (SELECT id FROM headrace_tasks WHERE id < :below ORDER BY id DESC LIMIT :window)

-- name: live_window_of_owner
-- The same of one owner's.
SELECT count(*), min(id) FROM (
    SELECT id FROM headrace_tasks INDEXED BY headrace_tasks_owner
    WHERE owner = :owner AND id < :below ORDER BY id DESC LIMIT :window
)

-- name: skim_live
-- In the order of the table, from one id to another.
SELECT id, created_at, name, queue, state, 0, worker, owner,
    CASE WHEN instr(options, '"label"') THEN options ->> '$.label' END,
    CASE WHEN instr(options, '"tags"') THEN options -> '$.tags' END, NULL, NULL
FROM headrace_tasks
WHERE id < :below AND id >= :floor
    AND (:states IS NULL OR state IN (SELECT value FROM json_each(:states)))
    AND (:queues IS NULL OR queue IN (SELECT value FROM json_each(:queues)))
    AND (:names IS NULL OR name IN (SELECT value FROM json_each(:names)))
    AND (:tagged IS NULL OR instr(options, '"tags"'))
    AND (:word IS NULL OR instr(lower(id || ' ' || name || ' ' || queue || ' ' || state || ' ' || coalesce(worker, '') || ' '
        || coalesce(owner, '') || CASE WHEN instr(options, '"label"') OR instr(options, '"tags"') THEN options ELSE '' END), :word))
ORDER BY id DESC LIMIT :limit

-- name: skim_live_of_owner
-- By the index on the owner, which is in the order of ids as well.
SELECT id, created_at, name, queue, state, 0, worker, owner,
    CASE WHEN instr(options, '"label"') THEN options ->> '$.label' END,
    CASE WHEN instr(options, '"tags"') THEN options -> '$.tags' END, NULL, NULL
FROM headrace_tasks INDEXED BY headrace_tasks_owner
WHERE owner = :owner AND id < :below AND id >= :floor
    AND (:states IS NULL OR state IN (SELECT value FROM json_each(:states)))
    AND (:queues IS NULL OR queue IN (SELECT value FROM json_each(:queues)))
    AND (:names IS NULL OR name IN (SELECT value FROM json_each(:names)))
    AND (:tagged IS NULL OR instr(options, '"tags"'))
    AND (:word IS NULL OR instr(lower(id || ' ' || name || ' ' || queue || ' ' || state || ' ' || coalesce(worker, '') || ' '
        || coalesce(owner, '') || CASE WHEN instr(options, '"label"') OR instr(options, '"tags"') THEN options ELSE '' END), :word))
ORDER BY id DESC LIMIT :limit

-- name: skim_live_of_job
-- By the index on the job, which is in the order of ids as well.
SELECT id, created_at, name, queue, state, 0, worker, owner,
    CASE WHEN instr(options, '"label"') THEN options ->> '$.label' END,
    CASE WHEN instr(options, '"tags"') THEN options -> '$.tags' END, NULL, NULL
FROM headrace_tasks INDEXED BY headrace_tasks_job
WHERE job = :job AND id < :below
    AND (:states IS NULL OR state IN (SELECT value FROM json_each(:states)))
    AND (:queues IS NULL OR queue IN (SELECT value FROM json_each(:queues)))
    AND (:names IS NULL OR name IN (SELECT value FROM json_each(:names)))
    AND (:worker IS NULL OR worker = :worker) AND (:owner IS NULL OR owner = :owner)
    AND (:tagged IS NULL OR instr(options, '"tags"'))
    AND (:word IS NULL OR instr(lower(id || ' ' || name || ' ' || queue || ' ' || state || ' ' || coalesce(worker, '') || ' '
        || coalesce(owner, '') || CASE WHEN instr(options, '"label"') OR instr(options, '"tags"') THEN options ELSE '' END), :word))
ORDER BY id DESC LIMIT :limit

-- name: skim_held
-- What workers hold is in an index of its own: few, whatever waits.
SELECT id, created_at, name, queue, state, 0, worker, owner,
    CASE WHEN instr(options, '"label"') THEN options ->> '$.label' END,
    CASE WHEN instr(options, '"tags"') THEN options -> '$.tags' END, NULL, NULL
FROM headrace_tasks INDEXED BY headrace_tasks_worker
WHERE worker IS NOT NULL AND (:worker IS NULL OR worker = :worker) AND id < :below
    AND (:states IS NULL OR state IN (SELECT value FROM json_each(:states)))
    AND (:queues IS NULL OR queue IN (SELECT value FROM json_each(:queues)))
    AND (:names IS NULL OR name IN (SELECT value FROM json_each(:names)))
    AND (:owner IS NULL OR owner = :owner)
    AND (:tagged IS NULL OR instr(options, '"tags"'))
    AND (:word IS NULL OR instr(lower(id || ' ' || name || ' ' || queue || ' ' || state || ' ' || coalesce(worker, '') || ' '
        || coalesce(owner, '') || CASE WHEN instr(options, '"label"') OR instr(options, '"tags"') THEN options ELSE '' END), :word))
ORDER BY id DESC LIMIT :limit

-- name: skim_unapproved
-- Who waits for a person, or for a worker that is gone: in the index of those that wait, where no key comes before them.
SELECT id, created_at, name, queue, state, 0, worker, owner,
    CASE WHEN instr(options, '"label"') THEN options ->> '$.label' END,
    CASE WHEN instr(options, '"tags"') THEN options -> '$.tags' END, NULL, NULL
FROM headrace_tasks INDEXED BY headrace_tasks_waiting
WHERE (waiting_on IS NOT NULL OR (state = 'pending_approval' OR state = 'blocked' OR state = 'lost'))
    AND waiting_on IS NULL AND id < :below
    AND state IN (SELECT value FROM json_each(:states))
    AND (:queues IS NULL OR queue IN (SELECT value FROM json_each(:queues)))
    AND (:names IS NULL OR name IN (SELECT value FROM json_each(:names)))
    AND (:owner IS NULL OR owner = :owner)
    AND (:tagged IS NULL OR instr(options, '"tags"'))
    AND (:word IS NULL OR instr(lower(id || ' ' || name || ' ' || queue || ' ' || state || ' ' || coalesce(worker, '') || ' '
        || coalesce(owner, '') || CASE WHEN instr(options, '"label"') OR instr(options, '"tags"') THEN options ELSE '' END), :word))
ORDER BY id DESC LIMIT :limit

-- name: skim_done
-- Those of a list of ids.
SELECT id, finished_at, name, queue, state, state = 'failed' AND dead_letter, worker, owner,
    CASE WHEN instr(options, '"label"') THEN options ->> '$.label' END,
    CASE WHEN instr(options, '"tags"') THEN options -> '$.tags' END, error_class, substr(error_message, 1, :characters)
FROM headrace_history WHERE id IN (SELECT value FROM json_each(:ids))
    AND (:worker IS NULL OR worker = :worker) AND (:tagged IS NULL OR instr(options, '"tags"'))
    AND (:word IS NULL OR instr(lower(id || ' ' || name || ' ' || queue || ' ' || state || ' ' || coalesce(worker, '') || ' '
        || coalesce(owner, '') || ' ' || coalesce(error_class, '') || ' ' || coalesce(substr(error_message, 1, :characters), '')
        || CASE WHEN instr(options, '"label"') OR instr(options, '"tags"') THEN options ELSE '' END), :word))

-- name: skim_jobs
-- In the order of the table.
SELECT id, name, state, owner FROM headrace_jobs WHERE id < :below ORDER BY id DESC LIMIT :window

-- name: skim_jobs_of_name
-- By the index on the name, which is in the order of ids as well.
SELECT id, name, state, owner FROM headrace_jobs INDEXED BY headrace_jobs_name
WHERE name = :name AND id < :below ORDER BY id DESC LIMIT :window

-- name: skim_jobs_of_owner
-- By the index on the owner.
SELECT id, name, state, owner FROM headrace_jobs INDEXED BY headrace_jobs_owner
WHERE owner = :owner AND id < :below ORDER BY id DESC LIMIT :window
