-- Queues with ready tasks, from one to the next over the ready index, and those that somebody paused or configured.
CREATE OR REPLACE FUNCTION headrace.queue_names_v1()
RETURNS SETOF text
LANGUAGE plpgsql
STABLE
SET enable_seqscan = off
SET enable_bitmapscan = off
SET enable_sort = off
AS $function$
DECLARE
    here text;
BEGIN
    SELECT t.queue INTO here FROM headrace.tasks t
    WHERE t.state = 'pending' AND t.ready_at IS NOT NULL ORDER BY t.queue LIMIT 1;
    WHILE here IS NOT NULL LOOP
        RETURN NEXT here;
        SELECT t.queue INTO here FROM headrace.tasks t
        WHERE t.state = 'pending' AND t.ready_at IS NOT NULL AND t.queue > here ORDER BY t.queue LIMIT 1;
    END LOOP;
    RETURN QUERY SELECT q.name FROM headrace.queues q;
END
$function$;
