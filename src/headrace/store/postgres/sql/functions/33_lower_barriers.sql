-- For each entry, one thing less to wait for; each barrier is changed once, by a sum. Of many that do this at once for one
-- task, the one that comes to zero frees it. The sums come in the order of ids, and so do the locks: the settings leave
-- no other join than a loop over them.
-- A barrier of a task that waits no more may be lowered again, by an upstream that ran again: it stays at zero.
CREATE OR REPLACE FUNCTION headrace.lower_barriers_v1(tasks bigint[])
RETURNS void
LANGUAGE plpgsql
SET enable_seqscan = off
SET enable_bitmapscan = off
SET enable_hashjoin = off
SET enable_mergejoin = off
SET enable_hashagg = off
SET plan_cache_mode = force_generic_plan
AS $function$
DECLARE
    free bigint[];
BEGIN
    WITH sums AS MATERIALIZED (
        SELECT e.task, count(*)::integer AS n FROM unnest(tasks) AS e(task) GROUP BY e.task ORDER BY e.task
    ), lowered AS (
        UPDATE headrace.barriers b SET remaining = greatest(b.remaining - s.n, 0)
        FROM sums s WHERE b.task = ANY (ARRAY[s.task])
        RETURNING b.task, b.remaining
    )
    SELECT array_agg(l.task ORDER BY l.task) INTO free FROM lowered l WHERE l.remaining = 0;
    IF free IS NOT NULL THEN
        PERFORM headrace.free_tasks_v1(free);
    END IF;
END
$function$;
