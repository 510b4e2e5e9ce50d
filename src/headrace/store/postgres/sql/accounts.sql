-- name: insert_user
-- Nothing when the name is taken.
INSERT INTO headrace.users (name, role, password, created_at, changed_at)
SELECT $1, $2, $3, instant.at, instant.at FROM (SELECT clock_timestamp() AS at OFFSET 0) AS instant
ON CONFLICT (name) DO NOTHING
RETURNING name, role, password, disabled, failed_logins, locked_until, created_at, changed_at;

-- name: lock_users
-- Of many who want to be the first, one is; the others see it then. Readers go on.
LOCK TABLE headrace.users IN SHARE ROW EXCLUSIVE MODE;

-- name: any_user
-- Whether somebody was here before.
SELECT FROM headrace.users LIMIT 1;

-- name: all_users
-- By name, as bytes, as the other database sorts.
SELECT name, role, password, disabled, failed_logins, locked_until, created_at, changed_at
FROM headrace.users ORDER BY name COLLATE "C";

-- name: get_user
-- One of them.
SELECT name, role, password, disabled, failed_logins, locked_until, created_at, changed_at
FROM headrace.users WHERE name = $1;

-- name: hold_admins
-- Those that are left, held still: of two that disable each other the second finds what the first did.
SELECT name FROM headrace.users WHERE role = 'admin' AND NOT disabled ORDER BY name FOR UPDATE;

-- name: change_user
-- What is NULL stays; a new password lifts a lock.
UPDATE headrace.users
SET role = coalesce($2, role), password = coalesce($3, password), disabled = coalesce($4, disabled),
    failed_logins = CASE WHEN $3 IS NULL THEN failed_logins ELSE 0 END,
    locked_until = CASE WHEN $3 IS NULL THEN locked_until END,
    changed_at = clock_timestamp()
WHERE name = $1
RETURNING name, role, password, disabled, failed_logins, locked_until, created_at, changed_at;

-- name: renew_password
-- The same password, hashed anew; one that was changed meanwhile stays. An earlier try of this call may have done it.
UPDATE headrace.users SET password = $3 WHERE name = $1 AND password IN ($2, $3) AND NOT disabled
RETURNING name, role, password, disabled, failed_logins, locked_until, created_at, changed_at;

-- name: revoke_sessions
-- Whoever was logged in has to log in again.
UPDATE headrace.tokens SET revoked_at = clock_timestamp()
WHERE "user" = $1 AND kind = 'session' AND revoked_at IS NULL;

-- name: login_failed
-- A lock that holds is neither counted against nor made longer. One conditional update: of many at once each finds what
-- the one before it counted.
UPDATE headrace.users
SET failed_logins = CASE
        WHEN locked_until > clock_timestamp() THEN failed_logins
        WHEN failed_logins + 1 >= $2::integer THEN 0
        ELSE failed_logins + 1
    END,
    locked_until = CASE
        WHEN locked_until > clock_timestamp() THEN locked_until
        WHEN failed_logins + 1 >= $2::integer THEN clock_timestamp() + make_interval(secs => $3::double precision)
    END
WHERE name = $1
RETURNING name, role, password, disabled, failed_logins, locked_until, created_at, changed_at;

-- name: login_succeeded
-- Written only where there is something to forget. A lock that holds goes on: it came after this password was looked at.
UPDATE headrace.users
SET failed_logins = 0, locked_until = CASE WHEN locked_until > clock_timestamp() THEN locked_until END
WHERE name = $1 AND (failed_logins > 0 OR locked_until <= clock_timestamp());

-- name: user_for_token
-- Their password, where they may have tokens; held, so that a change that revokes sessions comes before this one or
-- finds it.
SELECT password FROM headrace.users WHERE name = $1 AND NOT disabled FOR SHARE;

-- name: insert_token
-- A second try of the same call finds its digest.
INSERT INTO headrace.tokens (id, "user", kind, label, digest, hint, scopes, created_at, expires_at)
SELECT $1::bigint, $2, $3, $4, $5, $6, $7, instant.at,
    least(instant.at + make_interval(secs => $8::double precision), $9::timestamptz) -- which passes over NULL
FROM (SELECT clock_timestamp() AS at OFFSET 0) AS instant
ON CONFLICT (digest) DO NOTHING;

-- name: token_of_digest
-- Whatever has become of it.
SELECT id, "user", kind, label, hint, scopes, created_at, expires_at, last_used_at, revoked_at
FROM headrace.tokens WHERE digest = $1;

-- name: find_token
-- With its user, while both are good.
SELECT u.name, u.role, u.password, u.disabled, u.failed_logins, u.locked_until, u.created_at, u.changed_at,
       t.id, t."user", t.kind, t.label, t.hint, t.scopes, t.created_at, t.expires_at, t.last_used_at, t.revoked_at
FROM headrace.tokens t JOIN headrace.users u ON u.name = t."user"
WHERE t.digest = $1 AND t.revoked_at IS NULL AND (t.expires_at IS NULL OR t.expires_at > clock_timestamp())
  AND NOT u.disabled;

-- name: tokens
-- Newest first. NULL: of everybody, of every kind.
SELECT id, "user", kind, label, hint, scopes, created_at, expires_at, last_used_at, revoked_at
FROM headrace.tokens
WHERE ($1::text IS NULL OR "user" = $1) AND ($2::text IS NULL OR kind = $2)
ORDER BY created_at DESC, id DESC;

-- name: touch_tokens
-- They were used now. Nobody waits for that: one that is being changed is left out.
UPDATE headrace.tokens SET last_used_at = clock_timestamp()
WHERE id IN (SELECT t.id FROM headrace.tokens t WHERE t.id = ANY ($1::bigint[]) FOR UPDATE SKIP LOCKED);

-- name: revoke_token
-- Once.
UPDATE headrace.tokens SET revoked_at = clock_timestamp() WHERE id = $1 AND revoked_at IS NULL RETURNING id;

-- name: take_audit_ids
-- One value of the sequence for each, in place of a block that a process keeps: here ids rise with the time, whoever
-- writes.
SELECT nextval('headrace.ids') FROM generate_series(1, $1::integer);

-- name: insert_audit
-- Before the act. A second try finds its ids.
INSERT INTO headrace.audit (id, at, actor, act, subject, detail, request)
SELECT e.id, clock_timestamp(), e.actor, e.act, e.subject, e.detail, e.request
FROM unnest($1::bigint[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[])
    AS e(id, actor, act, subject, detail, request)
ON CONFLICT (id) DO NOTHING;

-- name: close_audit
-- The first outcome stands.
UPDATE headrace.audit SET outcome = $2 WHERE id = ANY ($1::bigint[]) AND outcome IS NULL;

-- name: audit
-- Newest first: $1 actor, $2 act, $3 subject, $4 the last one seen, $5 how many.
SELECT id, at, actor, act, subject, detail, request, outcome FROM headrace.audit
WHERE ($1::text IS NULL OR actor = $1) AND ($2::text IS NULL OR act = $2) AND ($3::text IS NULL OR subject = $3)
  AND id < $4::bigint
ORDER BY id DESC LIMIT $5::integer;

-- name: audit_of_subject
-- What was done to one thing.
SELECT id, at, actor, act, subject, detail, request, outcome FROM headrace.audit
WHERE subject = $3 AND ($1::text IS NULL OR actor = $1) AND ($2::text IS NULL OR act = $2) AND id < $4::bigint
ORDER BY id DESC LIMIT $5::integer;

-- name: audit_of_actor
-- What one of them did. ($3 is NULL.)
SELECT id, at, actor, act, subject, detail, request, outcome FROM headrace.audit
WHERE actor = $1 AND ($2::text IS NULL OR act = $2) AND $3::text IS NULL AND id < $4::bigint
ORDER BY id DESC LIMIT $5::integer;

-- name: audit_of_act
-- Who did this. ($1 and $3 are NULL.)
SELECT id, at, actor, act, subject, detail, request, outcome FROM headrace.audit
WHERE act = $2 AND $1::text IS NULL AND $3::text IS NULL AND id < $4::bigint
ORDER BY id DESC LIMIT $5::integer;
