-- Counts anew what tasks wait for, and writes it down; returns those with nothing left to wait for. An ended task whose
-- dependents are still being released counts for those that its release will come to.
-- The caller holds the live upstreams of these tasks (FOR KEY SHARE, which only their end conflicts with) and the rows
-- of `releases`: else an end that commits meanwhile is lost.
CREATE OR REPLACE FUNCTION headrace.count_barriers_v1(ids bigint[])
RETURNS bigint[]
LANGUAGE plpgsql
SET enable_seqscan = off
SET enable_bitmapscan = off
SET enable_hashjoin = off
SET enable_mergejoin = off
AS $function$
DECLARE
    free bigint[];
BEGIN
    WITH counted AS MATERIALIZED (
        SELECT w.task, (
            SELECT count(*) FROM headrace.dependencies d
            WHERE d.task = w.task AND (
                EXISTS (SELECT FROM headrace.tasks u WHERE u.id = d.upstream)
                OR EXISTS (SELECT FROM headrace.releases r WHERE r.upstream = d.upstream AND d.task > r.after)
            )
        )::integer AS remaining
        FROM unnest(ids) AS w(task) ORDER BY w.task
    ), written AS (
        INSERT INTO headrace.barriers AS b (task, remaining) SELECT c.task, c.remaining FROM counted c ORDER BY c.task
        ON CONFLICT (task) DO UPDATE SET remaining = excluded.remaining
        RETURNING b.task, b.remaining
    )
    SELECT array_agg(w.task ORDER BY w.task) INTO free FROM written w WHERE w.remaining = 0;
    RETURN coalesce(free, '{}');
END
$function$;
