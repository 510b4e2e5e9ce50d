-- name: insert_job_events
-- Jobs as they are now, each under the next number of its counters.
INSERT INTO headrace_job_events (job, seq, at, state, total, completed, failed, cancelled)
SELECT c.job, c.seq, :now, j.state, c.total, c.completed, c.failed, c.cancelled
FROM json_each(:jobs) AS wanted
CROSS JOIN headrace_job_counts AS c ON c.job = wanted.value
CROSS JOIN headrace_jobs AS j ON j.id = wanted.value

-- name: raise_job_seq
-- The number is taken.
UPDATE headrace_job_counts SET seq = seq + 1 WHERE job IN (SELECT value FROM json_each(:jobs))

-- name: job_events
-- Those behind a number, in order.
SELECT job, seq, at, state, total, completed, failed, cancelled FROM headrace_job_events
WHERE job = :job AND seq > :after ORDER BY seq LIMIT :limit

-- name: last_job_events
-- The last ones, newest first.
SELECT job, seq, at, state, total, completed, failed, cancelled FROM headrace_job_events
WHERE job = :job ORDER BY seq DESC LIMIT :limit

-- name: job_lines
-- Those behind a number, in order.
SELECT job, job_seq, task, claim_no, at, stream, line FROM headrace_logs
WHERE job = :job AND job_seq > :after ORDER BY job_seq LIMIT :limit

-- name: last_job_lines
-- The last ones, newest first.
SELECT job, job_seq, task, claim_no, at, stream, line FROM headrace_logs
WHERE job = :job ORDER BY job_seq DESC LIMIT :limit

-- name: job_heads
-- The numbers that come next.
SELECT c.job, c.seq, coalesce(n.next, 0)
FROM json_each(?) AS wanted
CROSS JOIN headrace_job_counts AS c ON c.job = wanted.value
LEFT JOIN headrace_job_lines AS n ON n.job = c.job

-- name: task_heads
-- What of these tasks can have changed.
SELECT t.id, t.state, t.claim_no, t.progress, (
    SELECT coalesce(max(l.seq) + 1, 0) FROM headrace_logs AS l WHERE l.task = t.id AND l.claim_no = t.claim_no
)
FROM headrace_tasks AS t WHERE t.id IN (SELECT value FROM json_each(:ids))
UNION ALL
SELECT h.id, h.state, h.claim_no, h.progress, (
    SELECT coalesce(max(l.seq) + 1, 0) FROM headrace_logs AS l WHERE l.task = h.id AND l.claim_no = h.claim_no
)
FROM headrace_history AS h WHERE h.id IN (SELECT value FROM json_each(:ids))

-- name: owners_of_lines
-- Whose lines are lines of a job as well.
SELECT t.id, t.job FROM headrace_tasks AS t WHERE t.id IN (SELECT value FROM json_each(:ids)) AND t.job IS NOT NULL
UNION ALL
SELECT h.id, h.job FROM headrace_history AS h WHERE h.id IN (SELECT value FROM json_each(:ids)) AND h.job IS NOT NULL

-- name: written_lines
-- Those of a call that an earlier try of it wrote.
SELECT l.task, l.claim_no, l.seq FROM json_each(?) AS given
CROSS JOIN headrace_logs AS l
    ON l.task = given.value ->> '$[0]' AND l.claim_no = given.value ->> '$[1]' AND l.seq = given.value ->> '$[2]'

-- name: next_lines
-- The numbers that the lines of these jobs have next; none where they have no line yet.
SELECT job, next FROM headrace_job_lines WHERE job IN (SELECT value FROM json_each(?))

-- name: set_next_line
-- Where the lines of a job stand now.
INSERT INTO headrace_job_lines (job, next) VALUES (:job, :next)
ON CONFLICT (job) DO UPDATE SET next = excluded.next

-- name: append_logs
-- Lines that are new.
INSERT INTO headrace_logs (task, claim_no, seq, at, stream, line, job, job_seq) VALUES (?, ?, ?, ?, ?, ?, ?, ?)
