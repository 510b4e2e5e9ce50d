-- name: breakers
-- All of them: a table of a few rows. One that is open past its time is half open; one opened by hand stays open.
SELECT service,
    CASE WHEN status = 'open' AND NOT forced AND until <= :now THEN 'half_open' ELSE status END,
    forced, until, probe_by, calls, failures, revision, changed_at, changed_by
FROM headrace_breakers
WHERE :service IS NULL OR service = :service
ORDER BY service

-- name: open_breaker
-- One that is open already stays as it is: of many openers the first makes the revision. By hand it stays open.
INSERT INTO headrace_breakers (service, status, forced, until, calls, failures, revision, changed_at, changed_by)
VALUES (:service, 'open', :forced, CASE WHEN :forced THEN NULL ELSE :until END, :calls, :failures, 1, :now, :by)
ON CONFLICT (service) DO UPDATE SET
    status = 'open', forced = excluded.forced, until = excluded.until, probe_by = NULL, probe_at = NULL,
    calls = excluded.calls, failures = excluded.failures, revision = revision + 1, changed_at = excluded.changed_at,
    changed_by = excluded.changed_by
WHERE NOT forced AND (excluded.forced OR status = 'closed' OR until <= :now)

-- name: probe_breaker
-- The one probe. Whoever has it has it still; of somebody who was not heard of for so long it is taken.
UPDATE headrace_breakers SET probe_by = :by, probe_at = :now
WHERE service = :service AND revision = :revision AND status = 'open' AND NOT forced AND until <= :now
    AND (probe_by IS NULL OR probe_by = :by OR probe_at <= :now - :patience)

-- name: close_breaker
-- The probe's holder alone, and only what it has probed.
UPDATE headrace_breakers
SET status = 'closed', until = NULL, probe_by = NULL, probe_at = NULL, calls = 0, failures = 0,
    revision = revision + 1, changed_at = :now, changed_by = :by
WHERE service = :service AND revision = :revision AND status = 'open' AND NOT forced AND probe_by = :by

-- name: reset_breaker
-- By hand, whatever it was.
INSERT INTO headrace_breakers (service, status, revision, changed_at, changed_by)
VALUES (:service, 'closed', 1, :now, :by)
ON CONFLICT (service) DO UPDATE SET
    status = 'closed', forced = 0, until = NULL, probe_by = NULL, probe_at = NULL, calls = 0, failures = 0,
    revision = revision + 1, changed_at = excluded.changed_at, changed_by = excluded.changed_by

-- name: keep_breaker_change
-- As it is since it was changed.
INSERT INTO headrace_breaker_changes (service, revision, status, forced, until, calls, failures, changed_at, changed_by)
SELECT service, revision, status, forced, until, calls, failures, changed_at, changed_by
FROM headrace_breakers WHERE service = :service
ON CONFLICT (service, revision) DO NOTHING

-- name: drop_breaker_changes
-- Those before the last so many.
DELETE FROM headrace_breaker_changes
WHERE service = :service
    AND revision <= (SELECT revision FROM headrace_breakers WHERE service = :service) - :kept

-- name: breaker_changes
-- By the key, the newest first.
SELECT revision, status, forced, until, calls, failures, changed_at, changed_by FROM headrace_breaker_changes
WHERE service = :service ORDER BY revision DESC LIMIT :limit
