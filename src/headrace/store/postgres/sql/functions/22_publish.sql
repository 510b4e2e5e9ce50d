-- Enqueues the tasks that subscribe to an event: one look into an index where none does. `own` is that of enqueue_v1. The
-- payload is JSON already, and stays as it was sent.
CREATE OR REPLACE FUNCTION headrace.publish_v1(the_event text, the_key text, the_payload text, own boolean)
RETURNS integer
LANGUAGE plpgsql
SET enable_seqscan = off
AS $function$
DECLARE
    stored jsonb;
    taken jsonb;
    n integer := 0;
BEGIN
    FOR stored IN SELECT s.task::jsonb FROM headrace.subscriptions s WHERE s.event = the_event ORDER BY s.name LOOP
        taken := (stored ->> 'arguments')::jsonb;
        PERFORM headrace.enqueue_stored_v1(stored || jsonb_build_object('arguments', '{' || concat_ws(
            ',',
            CASE WHEN taken ? 'event' THEN '"event":' || to_json(the_event)::text END,
            CASE WHEN taken ? 'key' THEN '"key":' || to_json(the_key)::text END,
            CASE WHEN taken ? 'payload' THEN '"payload":' || the_payload END
        ) || '}'), own);
        n := n + 1;
    END LOOP;
    RETURN n;
END
$function$;
