-- name: outcome_sums
-- By the index on the minute, and no further than it is asked for.
SELECT to_timestamp(floor(extract(epoch FROM o.minute) / $3::integer) * $3) AS at, o.queue, o.name, o.outcome,
       sum(o.n)::bigint AS n
FROM headrace.outcomes o WHERE o.minute >= $1::timestamptz AND o.minute < $2::timestamptz
GROUP BY 1, 2, 3, 4 ORDER BY 1, 2, 3, 4;

-- name: keep_depths
-- Once a minute, by whoever comes first. What is too old goes by the index on the minute, a part at a time.
WITH clock AS MATERIALIZED (
    SELECT date_trunc('minute', clock_timestamp()) AS minute
), old AS (
    DELETE FROM headrace.depths d WHERE d.ctid = ANY (ARRAY(
        SELECT o.ctid FROM headrace.depths o
        WHERE o.minute < (SELECT c.minute FROM clock c) - make_interval(secs => $3::double precision)
        ORDER BY o.minute LIMIT 5000
    ))
)
INSERT INTO headrace.depths (queue, minute, depths)
SELECT k.queue, c.minute, k.depths FROM clock c CROSS JOIN unnest($1::text[], $2::text[]) AS k(queue, depths)
WHERE NOT EXISTS (SELECT FROM headrace.depths d WHERE d.queue = '' AND d.minute = c.minute)
ON CONFLICT (queue, minute) DO NOTHING
RETURNING queue;

-- name: depth_series
-- One probe of the key for each bucket.
SELECT b.at, found.depths FROM (
    SELECT $2::timestamptz + make_interval(secs => (g.place * $3::integer)::double precision) AS at
    FROM generate_series(0, $4::integer - 1) AS g(place)
) AS b CROSS JOIN LATERAL (
    SELECT d.depths FROM headrace.depths d
    WHERE d.queue = $1::text AND d.minute >= b.at AND d.minute < b.at + make_interval(secs => $3::double precision)
    ORDER BY d.minute LIMIT 1
) AS found
ORDER BY b.at;

-- name: sample_ends
-- The last of each state in each bucket. The state is asked for by ANY and stands in the order: no other index gives it.
SELECT found.id, found.name, found.queue, found.state, found.eligible_at, found.started_at, found.finished_at
FROM generate_series(0, $4::integer - 1) AS b(place) CROSS JOIN unnest($1::text[]) AS s(state) CROSS JOIN LATERAL (
    SELECT h.id, h.name, h.queue, h.state, h.eligible_at, h.started_at, h.finished_at FROM headrace.history h
    WHERE h.state = ANY (ARRAY[s.state])
      AND h.finished_at >= $2::timestamptz + make_interval(secs => (b.place * $3::integer)::double precision)
      AND h.finished_at < $2::timestamptz + make_interval(secs => ((b.place + 1) * $3::integer)::double precision)
    ORDER BY h.state DESC, h.finished_at DESC, h.id DESC LIMIT $5::integer
) AS found;

-- name: own_ends
-- By the index on the owner.
SELECT h.id, h.name, h.queue, h.state, h.eligible_at, h.started_at, h.finished_at FROM headrace.history h
WHERE h.owner = ANY (ARRAY[$1::text]) AND h.owner IS NOT NULL AND h.finished_at >= $2::timestamptz
ORDER BY h.owner DESC, h.finished_at DESC, h.id DESC LIMIT $3::integer;

-- name: newest
-- The end of the table, and of each state.
SELECT (SELECT max(t.id) FROM headrace.tasks t), ended.id, ended.finished_at
FROM (SELECT) AS always LEFT JOIN (
    SELECT found.id, found.finished_at FROM unnest($1::text[]) AS s(state) CROSS JOIN LATERAL (
        SELECT h.id, h.finished_at FROM headrace.history h WHERE h.state = ANY (ARRAY[s.state])
        ORDER BY h.state DESC, h.finished_at DESC, h.id DESC LIMIT 1
    ) AS found
    ORDER BY found.finished_at DESC, found.id DESC LIMIT 1
) AS ended ON true;

-- name: newest_of_owner
-- The ends of theirs in the indexes.
SELECT (SELECT t.id FROM headrace.tasks t WHERE t.owner = $1::text ORDER BY t.id DESC LIMIT 1), ended.id, ended.finished_at
FROM (SELECT) AS always LEFT JOIN (
    SELECT h.id, h.finished_at FROM headrace.history h WHERE h.owner = ANY (ARRAY[$1]) AND h.owner IS NOT NULL
    ORDER BY h.owner DESC, h.finished_at DESC, h.id DESC LIMIT 1
) AS ended ON true;

-- name: holding
-- Up to the cap each, in the index.
SELECT w.id, counted.n::integer FROM unnest($1::text[]) AS w(id) CROSS JOIN LATERAL (
    SELECT count(*) AS n FROM (SELECT FROM headrace.tasks t WHERE t.worker = w.id LIMIT $2::integer) AS found
) AS counted
WHERE counted.n > 0;
