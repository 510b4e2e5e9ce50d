-- Tells of tasks that have failed (they are in history by now) to whoever wants to hear of it. What such an event enqueued
-- tells of nothing: it would go on for ever.
CREATE OR REPLACE FUNCTION headrace.publish_failures_v1(ids bigint[])
RETURNS void
LANGUAGE plpgsql
SET enable_seqscan = off
AS $function$
DECLARE
    failure record;
    told text;
BEGIN
    PERFORM FROM headrace.subscriptions s WHERE s.event IN ('task.failed', 'task.dead_letter') LIMIT 1;
    IF NOT FOUND THEN
        RETURN;
    END IF;
    FOR failure IN
        SELECT h.id, h.name, h.queue, h.error_class, h.error_message, h.dead_letter
        FROM headrace.history h
        WHERE h.id = ANY (ids) AND h.state = 'failed' AND coalesce(h.options::json ->> 'event', '') NOT LIKE 'task.%'
        ORDER BY h.id
    LOOP
        told := json_build_object(
            'error', json_build_object('class', failure.error_class, 'message', failure.error_message),
            'name', failure.name, 'queue', failure.queue, 'task', failure.id
        )::text;
        PERFORM headrace.publish_v1('task.failed', failure.id::text, told, true);
        IF failure.dead_letter THEN
            PERFORM headrace.publish_v1('task.dead_letter', failure.id::text, told, true);
        END IF;
    END LOOP;
END
$function$;
