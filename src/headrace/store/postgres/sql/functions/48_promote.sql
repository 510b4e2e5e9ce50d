-- Readies tasks that became due and wakes the workers of their queues; how many.
CREATE OR REPLACE FUNCTION headrace.promote_v1(most integer)
RETURNS integer
LANGUAGE plpgsql
SET enable_seqscan = off
SET enable_bitmapscan = off
SET enable_sort = off
AS $function$
DECLARE
    -- A variable is a bound of the index scan; clock_timestamp() itself would be a filter over every future task.
    instant CONSTANT timestamptz := clock_timestamp();
    promoted integer;
BEGIN
    WITH due AS MATERIALIZED (
        SELECT t.id FROM headrace.tasks t
        WHERE t.state = 'pending' AND t.ready_at IS NULL AND t.waiting_on IS NULL AND t.eligible_at <= instant
        ORDER BY t.eligible_at LIMIT most
        FOR UPDATE SKIP LOCKED
    ), readied AS (
        UPDATE headrace.tasks t SET ready_at = instant FROM due WHERE t.id = ANY (ARRAY[due.id]) RETURNING t.queue
    ), told AS (
        SELECT count(pg_notify('headrace', q.queue)) AS n FROM (SELECT DISTINCT queue FROM readied) AS q
    )
    SELECT count(*) + 0 * (SELECT n FROM told) INTO promoted FROM readied;
    RETURN promoted;
END
$function$;
