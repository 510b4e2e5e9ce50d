-- Cancels blocked tasks that can never run, and whatever can never run because of that: one statement for the whole way
-- down. `skips` says of a task that it only waited for a failure that did not come. One that has begun stays. Returns what
-- it cancelled; whoever calls looks once more at what waits for that, because an edge may have been written while this
-- waited for a lock.
CREATE OR REPLACE FUNCTION headrace.doom_v1(tasks bigint[], skips boolean[])
RETURNS bigint[]
LANGUAGE plpgsql
SET enable_seqscan = off
SET enable_bitmapscan = off
SET enable_hashjoin = off
SET enable_mergejoin = off
AS $function$
DECLARE
    failing bigint[];
    skipped bigint[];
BEGIN
    WITH RECURSIVE lost(task, skipped) AS (
        SELECT s.task, s.skipped
        FROM unnest(tasks, skips) AS s(task, skipped) JOIN headrace.tasks t ON t.id = ANY (ARRAY[s.task])
        WHERE (t.state = 'blocked') IS TRUE AND NOT headrace.begun_v1(t.id, t.enqueued_at)
        UNION
        SELECT d.task, d.kind = 2
        FROM lost l
        JOIN headrace.dependencies d ON d.upstream = ANY (ARRAY[l.task]) AND d.kind <> 1
        JOIN headrace.tasks t ON t.id = ANY (ARRAY[d.task])
        WHERE (t.state = 'blocked') IS TRUE AND NOT headrace.begun_v1(t.id, t.enqueued_at)
    ), reasons AS (
        -- What failed says more than a handler that nobody needs.
        SELECT l.task, bool_and(l.skipped) AS skipped FROM lost l GROUP BY l.task
    )
    SELECT array_agg(r.task) FILTER (WHERE NOT r.skipped), array_agg(r.task) FILTER (WHERE r.skipped)
    INTO failing, skipped FROM reasons r;
    PERFORM FROM headrace.tasks t WHERE t.id = ANY (failing || skipped) ORDER BY t.id FOR UPDATE;
    failing := ARRAY(
        SELECT t.id FROM headrace.tasks t
        WHERE t.id = ANY (failing) AND (t.state = 'blocked') IS TRUE AND NOT headrace.begun_v1(t.id, t.enqueued_at));
    skipped := ARRAY(
        SELECT t.id FROM headrace.tasks t
        WHERE t.id = ANY (skipped) AND (t.state = 'blocked') IS TRUE AND NOT headrace.begun_v1(t.id, t.enqueued_at));
    RETURN headrace.end_tasks_v1(failing, 'cancelled', 'upstream_failed', NULL, NULL)
        || headrace.end_tasks_v1(skipped, 'cancelled', 'skipped', NULL, NULL);
END
$function$;
