-- name: subscriptions
-- By name: all of them ($1 NULL), or those of these names and whatever an app ($2) declared.
SELECT s.name, s.event, s.task, s.declared_by, s.changed_at FROM headrace.subscriptions s
WHERE $1::text[] IS NULL OR s.name = ANY ($1) OR s.declared_by = $2::text
ORDER BY s.name COLLATE "C";

-- name: lock_subscriptions
-- Whoever writes subscriptions waits for whoever else does: two that make the same one at once would both find none.
LOCK TABLE headrace.subscriptions IN SHARE ROW EXCLUSIVE MODE;

-- name: put_subscription
-- Makes it, or changes the one of that name.
INSERT INTO headrace.subscriptions (name, event, task, declared_by, changed_at)
VALUES ($1, $2, $3, $4, clock_timestamp())
ON CONFLICT (name) DO UPDATE SET event = excluded.event, task = excluded.task, changed_at = excluded.changed_at;

-- name: remove_subscriptions
-- By name.
DELETE FROM headrace.subscriptions s WHERE s.name = ANY ($1::text[]) RETURNING s.name;

-- name: publish
-- Enqueues the tasks that subscribe to an event, in a transaction of the user's.
SELECT headrace.publish_v1($1, $2, $3, false);

-- name: publish_failures
-- Tells of tasks that have failed.
SELECT headrace.publish_failures_v1($1);
