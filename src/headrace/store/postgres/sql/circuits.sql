-- name: breakers
-- All of them: a table of a few rows. One that is open past its time is half open; one opened by hand stays open.
SELECT b.service,
       CASE WHEN b.status = 'open' AND NOT b.forced AND b.until <= clock_timestamp() THEN 'half_open' ELSE b.status END
           AS status,
       b.forced, b.until, b.probe_by, b.calls, b.failures, b.revision, b.changed_at, b.changed_by
FROM headrace.breakers b
WHERE $1::text IS NULL OR b.service = $1
ORDER BY b.service;

-- name: open_breaker
-- One that is open already stays as it is: of many openers the first makes the revision. By hand it stays open. What
-- is changed is kept, and the oldest that was kept goes.
WITH changed AS (
    INSERT INTO headrace.breakers AS b (service, status, forced, until, calls, failures, revision, changed_at, changed_by)
    VALUES ($1, 'open', $6::boolean,
            CASE WHEN $6 THEN NULL ELSE clock_timestamp() + make_interval(secs => $3::double precision) END,
            $4, $5, 1, clock_timestamp(), $2)
    ON CONFLICT (service) DO UPDATE SET
        status = 'open', forced = excluded.forced, until = excluded.until, probe_by = NULL, probe_at = NULL,
        calls = excluded.calls, failures = excluded.failures, revision = b.revision + 1, changed_at = excluded.changed_at,
        changed_by = excluded.changed_by
    WHERE NOT b.forced AND (excluded.forced OR b.status = 'closed' OR b.until <= clock_timestamp())
    RETURNING b.*
), kept AS (
    INSERT INTO headrace.breaker_changes
        (service, revision, status, forced, until, calls, failures, changed_at, changed_by)
    SELECT c.service, c.revision, c.status, c.forced, c.until, c.calls, c.failures, c.changed_at, c.changed_by
    FROM changed c
    ON CONFLICT (service, revision) DO NOTHING
), dropped AS (
    DELETE FROM headrace.breaker_changes d USING changed c
    WHERE d.service = c.service AND d.revision <= c.revision - $7::bigint
)
SELECT c.service FROM changed c;

-- name: probe_breaker
-- The one probe. Whoever has it has it still; of somebody who was not heard of for so long it is taken.
UPDATE headrace.breakers b SET probe_by = $2, probe_at = clock_timestamp()
WHERE b.service = $1 AND b.revision = $3 AND b.status = 'open' AND NOT b.forced AND b.until <= clock_timestamp()
  AND (b.probe_by IS NULL OR b.probe_by = $2
       OR b.probe_at <= clock_timestamp() - make_interval(secs => $4::double precision))
RETURNING b.service;

-- name: close_breaker
-- The probe's holder alone, and only what it has probed. Kept as above.
WITH changed AS (
    UPDATE headrace.breakers b
    SET status = 'closed', until = NULL, probe_by = NULL, probe_at = NULL, calls = 0, failures = 0,
        revision = b.revision + 1, changed_at = clock_timestamp(), changed_by = $2
    WHERE b.service = $1 AND b.revision = $3 AND b.status = 'open' AND NOT b.forced AND b.probe_by = $2
    RETURNING b.*
), kept AS (
    INSERT INTO headrace.breaker_changes
        (service, revision, status, forced, until, calls, failures, changed_at, changed_by)
    SELECT c.service, c.revision, c.status, c.forced, c.until, c.calls, c.failures, c.changed_at, c.changed_by
    FROM changed c
    ON CONFLICT (service, revision) DO NOTHING
), dropped AS (
    DELETE FROM headrace.breaker_changes d USING changed c
    WHERE d.service = c.service AND d.revision <= c.revision - $4::bigint
)
SELECT c.service FROM changed c;

-- name: reset_breaker
-- By hand, whatever it was. Kept as above.
WITH changed AS (
    INSERT INTO headrace.breakers AS b (service, status, revision, changed_at, changed_by)
    VALUES ($1, 'closed', 1, clock_timestamp(), $2)
    ON CONFLICT (service) DO UPDATE SET
        status = 'closed', forced = false, until = NULL, probe_by = NULL, probe_at = NULL, calls = 0, failures = 0,
        revision = b.revision + 1, changed_at = excluded.changed_at, changed_by = excluded.changed_by
    RETURNING b.*
), kept AS (
    INSERT INTO headrace.breaker_changes
        (service, revision, status, forced, until, calls, failures, changed_at, changed_by)
    SELECT c.service, c.revision, c.status, c.forced, c.until, c.calls, c.failures, c.changed_at, c.changed_by
    FROM changed c
    ON CONFLICT (service, revision) DO NOTHING
), dropped AS (
    DELETE FROM headrace.breaker_changes d USING changed c
    WHERE d.service = c.service AND d.revision <= c.revision - $3::bigint
)
SELECT c.service FROM changed c;

-- name: breaker_changes
-- By the key, the newest first.
SELECT c.revision, c.status, c.forced, c.until, c.calls, c.failures, c.changed_at, c.changed_by
FROM headrace.breaker_changes c WHERE c.service = $1::text ORDER BY c.revision DESC LIMIT $2::integer;
