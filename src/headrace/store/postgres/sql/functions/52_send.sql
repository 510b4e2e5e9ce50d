-- Keeps an event, enqueues the tasks that subscribe to it and resumes those that wait for it. Under the locks of their waits, so that a task that is about to wait
-- is either seen here or sees the event itself.
CREATE OR REPLACE FUNCTION headrace.send_v1(the_id bigint, the_event text, the_key text, the_payload text)
RETURNS integer
LANGUAGE plpgsql
SET enable_seqscan = off
AS $function$
BEGIN
    INSERT INTO headrace.events (id, name, key, payload, created_at)
    VALUES (the_id, the_event, the_key, the_payload, clock_timestamp())
    ON CONFLICT (id) DO NOTHING;
    IF FOUND THEN  -- else an earlier try, whose answer was lost, did all of it
        PERFORM headrace.publish_v1(the_event, the_key, the_payload, true);
    END IF;
    PERFORM FROM headrace.waits w
    WHERE w.event = the_event AND w.key = the_key AND NOT w.over ORDER BY w.task, w.step FOR UPDATE;
    IF NOT FOUND THEN
        RETURN 0;
    END IF;
    RETURN headrace.resume_v1(ARRAY(
        SELECT w.task FROM headrace.waits w WHERE w.event = the_event AND w.key = the_key AND NOT w.over));
END
$function$;
