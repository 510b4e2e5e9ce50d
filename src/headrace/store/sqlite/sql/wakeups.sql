-- name: data_version
-- Changes when another connection changed the file; costs microseconds.
PRAGMA data_version

-- name: queues_with_work
-- One look into the ready index for each queue that is listened to, and one for each pool of those that have something:
-- whether it is new. The index is named, because after ANALYZE SQLite would scan.
SELECT wanted.value, EXISTS (
    SELECT 1 FROM json_each('["coroutine", "child", "thread", "command", "runner"]') AS pool
    CROSS JOIN headrace_tasks AS t INDEXED BY headrace_tasks_ready
    WHERE t.state = 'pending' AND t.ready_at IS NOT NULL AND t.queue = wanted.value AND t.pool = pool.value
        AND t.lane = 0
)
FROM json_each(?) AS wanted
WHERE EXISTS (
    SELECT 1 FROM headrace_tasks AS t INDEXED BY headrace_tasks_ready
    WHERE t.state = 'pending' AND t.ready_at IS NOT NULL AND t.queue = wanted.value
)
