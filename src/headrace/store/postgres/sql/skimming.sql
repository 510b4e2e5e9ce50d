-- name: live_window
-- How many there are below an id, up to so many, and the lowest of them.
SELECT count(*)::integer, min(id) FROM (
    SELECT t.id FROM headrace.tasks t WHERE t.id < $1::bigint ORDER BY t.id DESC LIMIT $2::integer
) AS looked;

-- name: live_window_of_owner
-- The same of one owner's.
SELECT count(*)::integer, min(id) FROM (
    SELECT t.id FROM headrace.tasks t WHERE t.owner = $3::text AND t.id < $1::bigint ORDER BY t.id DESC LIMIT $2::integer
) AS looked;

-- name: skim_live
-- By the primary key, from one id to another.
SELECT t.id, t.created_at AS at, t.name, t.queue, t.state, false AS dead_letter, t.worker, t.owner,
       CASE WHEN strpos(t.options, '"label"') > 0 THEN t.options::json ->> 'label' END AS label,
       CASE WHEN strpos(t.options, '"tags"') > 0 THEN (t.options::json -> 'tags')::text END AS tags,
       NULL::text AS error_class, NULL::text AS error_message
FROM headrace.tasks t
WHERE t.id < $1::bigint AND t.id >= $2::bigint
  AND (cardinality($3::text[]) = 0 OR t.state = ANY ($3))
  AND (cardinality($4::text[]) = 0 OR t.queue = ANY ($4))
  AND (cardinality($5::text[]) = 0 OR t.name = ANY ($5))
  AND (NOT $7::boolean OR strpos(t.options, '"tags"') > 0)
  AND ($8::text IS NULL OR strpos(lower(concat_ws(' ', t.id, t.name, t.queue, t.state, t.worker, t.owner,
       CASE WHEN strpos(t.options, '"label"') + strpos(t.options, '"tags"') > 0 THEN t.options END)), $8) > 0)
ORDER BY t.id DESC LIMIT $6::integer;

-- name: skim_live_of_owner
-- By the index on the owner, which is in the order of ids as well.
SELECT t.id, t.created_at AS at, t.name, t.queue, t.state, false AS dead_letter, t.worker, t.owner,
       CASE WHEN strpos(t.options, '"label"') > 0 THEN t.options::json ->> 'label' END AS label,
       CASE WHEN strpos(t.options, '"tags"') > 0 THEN (t.options::json -> 'tags')::text END AS tags,
       NULL::text AS error_class, NULL::text AS error_message
FROM headrace.tasks t
WHERE t.owner = $6::text AND t.id < $1::bigint AND t.id >= $2::bigint
  AND (cardinality($3::text[]) = 0 OR t.state = ANY ($3))
  AND (cardinality($4::text[]) = 0 OR t.queue = ANY ($4))
  AND (cardinality($5::text[]) = 0 OR t.name = ANY ($5))
  AND (NOT $8::boolean OR strpos(t.options, '"tags"') > 0)
  AND ($9::text IS NULL OR strpos(lower(concat_ws(' ', t.id, t.name, t.queue, t.state, t.worker, t.owner,
       CASE WHEN strpos(t.options, '"label"') + strpos(t.options, '"tags"') > 0 THEN t.options END)), $9) > 0)
ORDER BY t.id DESC LIMIT $7::integer;

-- name: skim_live_of_job
-- A job's tasks, however many wait beside it.
SELECT t.id, t.created_at AS at, t.name, t.queue, t.state, false AS dead_letter, t.worker, t.owner,
       CASE WHEN strpos(t.options, '"label"') > 0 THEN t.options::json ->> 'label' END AS label,
       CASE WHEN strpos(t.options, '"tags"') > 0 THEN (t.options::json -> 'tags')::text END AS tags,
       NULL::text AS error_class, NULL::text AS error_message
FROM headrace.tasks t
WHERE t.job = $2::bigint AND t.id < $1::bigint
  AND (cardinality($3::text[]) = 0 OR t.state = ANY ($3))
  AND (cardinality($4::text[]) = 0 OR t.queue = ANY ($4))
  AND (cardinality($5::text[]) = 0 OR t.name = ANY ($5))
  AND ($6::text IS NULL OR t.owner = $6)
  AND ($8::text IS NULL OR t.worker = $8)
  AND (NOT $9::boolean OR strpos(t.options, '"tags"') > 0)
  AND ($10::text IS NULL OR strpos(lower(concat_ws(' ', t.id, t.name, t.queue, t.state, t.worker, t.owner,
       CASE WHEN strpos(t.options, '"label"') + strpos(t.options, '"tags"') > 0 THEN t.options END)), $10) > 0)
ORDER BY t.id DESC LIMIT $7::integer;

-- name: skim_held
-- What workers hold is in an index of its own: few, whatever waits. The sum keeps the planner from the primary key, by
-- which it would pass all that waits.
SELECT t.id, t.created_at AS at, t.name, t.queue, t.state, false AS dead_letter, t.worker, t.owner,
       CASE WHEN strpos(t.options, '"label"') > 0 THEN t.options::json ->> 'label' END AS label,
       CASE WHEN strpos(t.options, '"tags"') > 0 THEN (t.options::json -> 'tags')::text END AS tags,
       NULL::text AS error_class, NULL::text AS error_message
FROM headrace.tasks t
WHERE t.worker IS NOT NULL AND ($2::text IS NULL OR t.worker = $2) AND t.id < $1::bigint
  AND (cardinality($3::text[]) = 0 OR t.state = ANY ($3))
  AND (cardinality($4::text[]) = 0 OR t.queue = ANY ($4))
  AND (cardinality($5::text[]) = 0 OR t.name = ANY ($5))
  AND ($6::text IS NULL OR t.owner = $6)
  AND (NOT $8::boolean OR strpos(t.options, '"tags"') > 0)
  AND ($9::text IS NULL OR strpos(lower(concat_ws(' ', t.id, t.name, t.queue, t.state, t.worker, t.owner,
       CASE WHEN strpos(t.options, '"label"') + strpos(t.options, '"tags"') > 0 THEN t.options END)), $9) > 0)
ORDER BY t.id + 0 DESC LIMIT $7::integer;

-- name: skim_unapproved
-- Who waits for a person, or for a worker that is gone: in the index of those that wait. The sum as in `skim_held`.
SELECT t.id, t.created_at AS at, t.name, t.queue, t.state, false AS dead_letter, t.worker, t.owner,
       CASE WHEN strpos(t.options, '"label"') > 0 THEN t.options::json ->> 'label' END AS label,
       CASE WHEN strpos(t.options, '"tags"') > 0 THEN (t.options::json -> 'tags')::text END AS tags,
       NULL::text AS error_class, NULL::text AS error_message
FROM headrace.tasks t
WHERE (t.waiting_on IS NOT NULL OR t.state IN ('pending_approval', 'blocked', 'lost')) AND t.waiting_on IS NULL
  AND t.state = ANY ($2::text[]) AND t.id < $1::bigint
  AND (cardinality($3::text[]) = 0 OR t.queue = ANY ($3))
  AND (cardinality($4::text[]) = 0 OR t.name = ANY ($4))
  AND ($5::text IS NULL OR t.owner = $5)
  AND (NOT $7::boolean OR strpos(t.options, '"tags"') > 0)
  AND ($8::text IS NULL OR strpos(lower(concat_ws(' ', t.id, t.name, t.queue, t.state, t.worker, t.owner,
       CASE WHEN strpos(t.options, '"label"') + strpos(t.options, '"tags"') > 0 THEN t.options END)), $8) > 0)
ORDER BY t.id + 0 DESC LIMIT $6::integer;

-- name: ended_places
-- Ended tasks by states, queues and names, the last first.
SELECT headrace.list_ended_v1($1::text[], $2::text[], $3::text[], NULL, NULL, $4::timestamptz, $5::bigint, $6::integer);

-- name: ended_places_of_owner
-- Theirs.
SELECT headrace.list_owned_v1($1::text, '{}', '{}', '{}', NULL, NULL, $2::timestamptz, $3::bigint, $4::integer);

-- name: ended_places_of_job
-- A job's tasks are few against all of history.
SELECT h.id FROM headrace.history h
WHERE h.job = $1::bigint AND h.state = ANY ($2::text[])
  AND ($3::timestamptz IS NULL OR (h.finished_at, h.id) < ($3, $4::bigint))
ORDER BY h.finished_at DESC, h.id DESC LIMIT $5::integer;

-- name: ended_places_of_dead_letters
-- Spelled out, so that the index that holds nothing else serves it.
SELECT h.id FROM headrace.history h
WHERE h.dead_letter AND h.state = 'failed' AND ($1::timestamptz IS NULL OR (h.finished_at, h.id) < ($1, $2::bigint))
ORDER BY h.finished_at DESC, h.id DESC LIMIT $3::integer;

-- name: skim_done
-- Those of a list of ids, and whatever it is its last one: its instant is where the next look begins.
SELECT h.id, h.finished_at AS at, h.name, h.queue, h.state, h.dead_letter AND h.state = 'failed' AS dead_letter, h.worker,
       h.owner, CASE WHEN strpos(h.options, '"label"') > 0 THEN h.options::json ->> 'label' END AS label,
       CASE WHEN strpos(h.options, '"tags"') > 0 THEN (h.options::json -> 'tags')::text END AS tags,
       h.error_class, left(h.error_message, $3::integer) AS error_message
FROM headrace.history h
WHERE h.id = ANY ($1::bigint[]) AND (h.id = $2::bigint OR (
    ($4::text IS NULL OR h.worker = $4) AND (NOT $5::boolean OR strpos(h.options, '"tags"') > 0)
    AND ($6::text IS NULL OR strpos(lower(concat_ws(' ', h.id, h.name, h.queue, h.state, h.worker, h.owner, h.error_class,
         left(h.error_message, $3),
         CASE WHEN strpos(h.options, '"label"') + strpos(h.options, '"tags"') > 0 THEN h.options END)), $6) > 0)
))
ORDER BY h.finished_at DESC, h.id DESC;

-- name: skim_jobs
-- In the order of the key.
SELECT j.id, j.name, j.state, j.owner FROM headrace.jobs j
WHERE j.id < $1::bigint ORDER BY j.id DESC LIMIT $2::integer;

-- name: skim_jobs_of_name
-- By the index on the name. It stands in the order, and is asked for by ANY: the order of the key alone would not do.
SELECT j.id, j.name, j.state, j.owner FROM headrace.jobs j
WHERE j.name = ANY (ARRAY[$3::text]) AND j.id < $1::bigint ORDER BY j.name DESC, j.id DESC LIMIT $2::integer;

-- name: skim_jobs_of_owner
-- By the index on the owner, for the same reason.
SELECT j.id, j.name, j.state, j.owner FROM headrace.jobs j
WHERE j.owner = ANY (ARRAY[$3::text]) AND j.owner IS NOT NULL AND j.id < $1::bigint
ORDER BY j.owner DESC, j.id DESC LIMIT $2::integer;
