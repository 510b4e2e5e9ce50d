-- name: has_schema
-- Whether the app has its tables.
SELECT to_regclass('headrace.meta') IS NOT NULL;

-- name: meta
-- The schema's revision and the oldest code that may work with it.
SELECT key, value FROM headrace.meta WHERE key IN ('schema', 'min_code');

-- name: facts
-- What the server says of itself, and how large our schema is. Others' connections count: the limit is for all.
SELECT current_setting('server_version_num')::integer AS version, current_setting('fsync') AS fsync,
       current_setting('synchronous_commit') AS synchronous_commit,
       current_setting('max_connections')::integer - current_setting('superuser_reserved_connections')::integer
           AS most_connections,
       (SELECT coalesce(sum(d.numbackends), 0)::integer FROM pg_stat_database d) AS connections,
       (SELECT coalesce(sum(pg_total_relation_size(c.oid)), 0)::bigint FROM pg_class c
        JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = 'headrace' AND c.relkind = 'r') AS size;
