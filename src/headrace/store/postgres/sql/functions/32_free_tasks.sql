-- Blocked tasks have nothing left to wait for: those of them that are due are ready, and their age counts from here. One
-- that waits for an approval beside others waits for that alone now; one that waits for an event goes on waiting.
-- States are compared so that no index on them is used, here and where else tasks are looked up by their ids: by the
-- statistics of an idle hour nobody is blocked, and a look through all that are would seem cheap.
CREATE OR REPLACE FUNCTION headrace.free_tasks_v1(ids bigint[])
RETURNS void
LANGUAGE plpgsql
SET enable_seqscan = off
AS $function$
DECLARE
    instant CONSTANT timestamptz := clock_timestamp();
    readied text[];
BEGIN
    WITH freed AS (
        UPDATE headrace.tasks t
        SET state = CASE WHEN t.waiting_on IS NULL THEN 'pending' ELSE 'pending_approval' END, waiting_on = NULL,
            eligible_at = greatest(t.eligible_at, instant), expires_at = instant + make_interval(secs => t.max_age),
            ready_at = CASE WHEN t.waiting_on IS NULL AND t.eligible_at <= instant THEN instant END
        WHERE t.id = ANY (ids) AND (t.state = 'blocked') IS TRUE AND (t.waiting_on IS NULL OR t.waiting_on = 'approval')
        RETURNING t.queue, t.ready_at
    )
    SELECT array_agg(DISTINCT f.queue) INTO readied FROM freed f WHERE f.ready_at IS NOT NULL;
    PERFORM pg_notify('headrace', q.queue) FROM unnest(readied) AS q(queue);
END
$function$;
