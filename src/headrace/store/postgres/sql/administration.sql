-- name: has_schema
-- Whether the app has its tables.
SELECT to_regclass('headrace.meta') IS NOT NULL;

-- name: meta
-- The schema's revision and the oldest code that may work with it.
SELECT key, value FROM headrace.meta WHERE key IN ('schema', 'min_code');
