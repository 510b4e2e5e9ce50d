-- The event that a wait of a task takes: the oldest since its run was enqueued that came in time and that no other wait
-- of the task has taken.
CREATE OR REPLACE FUNCTION headrace.next_event_v1(
    the_task bigint, the_event text, the_key text, since timestamptz, until timestamptz
)
RETURNS bigint
LANGUAGE plpgsql
SET enable_seqscan = off
AS $function$
BEGIN
    RETURN (
        SELECT e.id FROM headrace.events e
        WHERE e.name = the_event AND e.key = the_key AND e.created_at >= since
          AND e.created_at <= coalesce(until, 'infinity')
          AND NOT EXISTS (SELECT FROM headrace.waits w WHERE w.task = the_task AND w.taken = e.id)
        ORDER BY e.created_at, e.id LIMIT 1
    );
END
$function$;
