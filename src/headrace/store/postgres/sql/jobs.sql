-- name: create_job
-- The job's row; none where an earlier try was committed, which wrote all of it.
INSERT INTO headrace.jobs (
    id, name, description, timeout, created_at, deadline_at, on_success, on_failure, metadata, owner
)
SELECT $1, $2, $3, $4::double precision, clock.at, clock.at + make_interval(secs => $4), $5, $6, $7, $8
FROM (SELECT clock_timestamp() AS at) AS clock
ON CONFLICT (id) DO NOTHING
RETURNING id;

-- name: link_job
-- Edges of new tasks of a new job; texts of arrays, as for `finish`.
SELECT headrace.link_job_v1(
    $1::text::bigint[], $2::text::integer[], $3::text::bigint[], $4::text::smallint[], $5::text::integer[]);

-- name: create_job_counts
-- The job's counters.
INSERT INTO headrace.job_counts (job, seq) VALUES ($1, 1) ON CONFLICT (job) DO NOTHING;

-- name: note_job
-- What the job is now becomes the event that its counters promise.
SELECT headrace.note_job_v1(ARRAY[$1::bigint]);

-- name: get_jobs
-- Jobs by their ids, or by state and owner page by page, newest first; counters with what users' transactions added meanwhile.
SELECT j.id, j.name, j.description, j.state, j.reason, j.run_no, j.created_at, j.started_at, j.completed_at, j.deadline_at,
       coalesce(c.total, 0)
           + (SELECT coalesce(sum(a.n), 0)::integer FROM headrace.job_additions a WHERE a.job = j.id) AS total,
       coalesce(c.completed, 0) AS completed, coalesce(c.failed, 0) AS failed, coalesce(c.cancelled, 0) AS cancelled,
       (SELECT count(*) FROM headrace.tasks t WHERE t.job = j.id AND t.worker IS NOT NULL)::integer AS running,
       j.metadata, j.owner
FROM headrace.jobs j LEFT JOIN headrace.job_counts c ON c.job = j.id
WHERE ($1::bigint[] IS NULL OR j.id = ANY ($1))
  AND (cardinality($2::text[]) = 0 OR j.state = ANY ($2))
  AND ($3::bigint IS NULL OR j.id < $3)
  AND ($5::text IS NULL OR j.owner = $5)
ORDER BY j.id DESC LIMIT $4;

-- name: close_job
-- Ends a job with everything in it.
SELECT headrace.close_job_v1($1, $2, $3);

-- name: job_ends
-- How jobs ended: those of tasks, where this very transaction ended them.
SELECT j.id, j.state, extract(epoch FROM j.completed_at - j.started_at)::double precision AS took,
       CASE WHEN j.state = 'completed' THEN j.on_success ELSE j.on_failure END AS hook
FROM headrace.jobs j
WHERE j.id IN (SELECT h.job FROM headrace.history h WHERE h.id = ANY ($1::bigint[]))
  AND j.state NOT IN ('pending', 'running') AND j.xmin = pg_current_xact_id()::xid;

-- name: job_end
-- How one job ended.
SELECT j.id, j.state, extract(epoch FROM j.completed_at - j.started_at)::double precision AS took,
       CASE WHEN j.state = 'completed' THEN j.on_success ELSE j.on_failure END AS hook
FROM headrace.jobs j WHERE j.id = $1;

-- name: lock_job
-- The state of a job, held still by its counters' lock.
SELECT j.state
FROM (SELECT c.job FROM headrace.job_counts c WHERE c.job = $1 FOR UPDATE) AS held JOIN headrace.jobs j ON j.id = held.job;
