-- name: take_account_ids
-- Of tokens and audit entries, in a count of their own: the ids of tasks are what people type.
INSERT INTO headrace_ids (name, next) VALUES ('accounts', 1 + ?)
ON CONFLICT (name) DO UPDATE SET next = next + excluded.next - 1
RETURNING next

-- name: insert_user
-- Nothing when the name is taken.
INSERT INTO headrace_users (name, role, password, created_at, changed_at) VALUES (:name, :role, :password, :now, :now)
ON CONFLICT (name) DO NOTHING
RETURNING name, role, password, disabled, failed_logins, locked_until, created_at, changed_at

-- name: any_user
-- Whether somebody was here before.
SELECT 1 FROM headrace_users LIMIT 1

-- name: all_users
-- By name.
SELECT name, role, password, disabled, failed_logins, locked_until, created_at, changed_at
FROM headrace_users ORDER BY name

-- name: get_user
-- One of them.
SELECT name, role, password, disabled, failed_logins, locked_until, created_at, changed_at
FROM headrace_users WHERE name = ?

-- name: another_admin
-- Whether somebody else could still let people in.
SELECT 1 FROM headrace_users WHERE role = 'admin' AND NOT disabled AND name <> ? LIMIT 1

-- name: change_user
-- What is NULL stays; a new password lifts a lock.
UPDATE headrace_users
SET role = coalesce(:role, role), password = coalesce(:password, password), disabled = coalesce(:disabled, disabled),
    failed_logins = iif(:password IS NULL, failed_logins, 0), locked_until = iif(:password IS NULL, locked_until, NULL),
    changed_at = :now
WHERE name = :name
RETURNING name, role, password, disabled, failed_logins, locked_until, created_at, changed_at

-- name: renew_password
-- The same password, hashed anew; one that was changed meanwhile stays.
UPDATE headrace_users SET password = :fresh WHERE name = :name AND password = :verified AND NOT disabled
RETURNING name, role, password, disabled, failed_logins, locked_until, created_at, changed_at

-- name: revoke_sessions
-- Whoever was logged in has to log in again.
UPDATE headrace_tokens SET revoked_at = :now WHERE "user" = :name AND kind = 'session' AND revoked_at IS NULL

-- name: login_failed
-- A lock that holds is neither counted against nor made longer.
UPDATE headrace_users
SET failed_logins = CASE
        WHEN locked_until > :now THEN failed_logins WHEN failed_logins + 1 >= :most THEN 0 ELSE failed_logins + 1
    END,
    locked_until = CASE
        WHEN locked_until > :now THEN locked_until WHEN failed_logins + 1 >= :most THEN :now + :lock
    END
WHERE name = :name
RETURNING name, role, password, disabled, failed_logins, locked_until, created_at, changed_at

-- name: login_succeeded
-- Written only where there is something to forget. A lock that holds goes on: it came after this password was looked at.
UPDATE headrace_users SET failed_logins = 0, locked_until = iif(locked_until > :now, locked_until, NULL)
WHERE name = :name AND (failed_logins > 0 OR locked_until <= :now)

-- name: user_for_token
-- Their password, where they may have tokens.
SELECT password FROM headrace_users WHERE name = ? AND NOT disabled

-- name: insert_token
-- A secret is used once; the same digest again is a mistake.
INSERT INTO headrace_tokens (id, "user", kind, label, digest, hint, scopes, created_at, expires_at)
VALUES (:id, :user, :kind, :label, :digest, :hint, :scopes, :now, :expires_at)
RETURNING id, "user", kind, label, hint, scopes, created_at, expires_at, last_used_at, revoked_at

-- name: token_of_digest
-- Whatever became of it.
SELECT id, "user", kind, label, hint, scopes, created_at, expires_at, last_used_at, revoked_at
FROM headrace_tokens WHERE digest = ?

-- name: find_token
-- With its user, while both are good.
SELECT u.name, u.role, u.password, u.disabled, u.failed_logins, u.locked_until, u.created_at, u.changed_at,
    t.id, t."user", t.kind, t.label, t.hint, t.scopes, t.created_at, t.expires_at, t.last_used_at, t.revoked_at
FROM headrace_tokens AS t CROSS JOIN headrace_users AS u ON u.name = t."user"
WHERE t.digest = :digest AND t.revoked_at IS NULL AND (t.expires_at IS NULL OR t.expires_at > :now) AND NOT u.disabled

-- name: tokens
-- Newest first. NULL: of every kind.
SELECT id, "user", kind, label, hint, scopes, created_at, expires_at, last_used_at, revoked_at
FROM headrace_tokens WHERE :kind IS NULL OR kind = :kind ORDER BY created_at DESC, id DESC

-- name: tokens_of_user
-- The same of one user.
SELECT id, "user", kind, label, hint, scopes, created_at, expires_at, last_used_at, revoked_at
FROM headrace_tokens WHERE "user" = :user AND (:kind IS NULL OR kind = :kind) ORDER BY created_at DESC, id DESC

-- name: touch_tokens
-- They were used now.
UPDATE headrace_tokens SET last_used_at = :now WHERE id IN (SELECT value FROM json_each(:ids))

-- name: revoke_token
-- Once.
UPDATE headrace_tokens SET revoked_at = :now WHERE id = :id AND revoked_at IS NULL

-- name: insert_audit
-- Before the act.
INSERT INTO headrace_audit (id, at, actor, act, subject, detail, request) VALUES (?, ?, ?, ?, ?, ?, ?)

-- name: close_audit
-- The first outcome stands.
UPDATE headrace_audit SET outcome = :outcome WHERE id IN (SELECT value FROM json_each(:ids)) AND outcome IS NULL

-- name: audit
-- Newest first: ids rise with the time.
SELECT id, at, actor, act, subject, detail, request, outcome FROM headrace_audit
WHERE id < :before ORDER BY id DESC LIMIT :limit

-- name: audit_of_subject
-- What was done to one thing.
SELECT id, at, actor, act, subject, detail, request, outcome FROM headrace_audit
WHERE subject = :subject AND id < :before AND (:actor IS NULL OR actor = :actor) AND (:act IS NULL OR act = :act)
ORDER BY id DESC LIMIT :limit

-- name: audit_of_actor
-- What one of them did.
SELECT id, at, actor, act, subject, detail, request, outcome FROM headrace_audit
WHERE actor = :actor AND id < :before AND (:act IS NULL OR act = :act)
ORDER BY id DESC LIMIT :limit

-- name: audit_of_act
-- Who did this.
SELECT id, at, actor, act, subject, detail, request, outcome FROM headrace_audit
WHERE act = :act AND id < :before ORDER BY id DESC LIMIT :limit
