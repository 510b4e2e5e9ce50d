-- Resumes tasks whose wait is over by the clock, and those whose event came by a transaction of a user's, which touches no
-- task. Looked at: what is overdue, the events of the last minute, and some of all waits, from one to the next, so that
-- none is forgotten whose event was committed late. Returns how many went on, and where the next look goes on.
CREATE OR REPLACE FUNCTION headrace.deliver_v1(most integer, behind bigint)
RETURNS TABLE (resumed integer, reached bigint)
LANGUAGE plpgsql
SET enable_seqscan = off
SET enable_bitmapscan = off
SET enable_hashjoin = off
SET enable_mergejoin = off
AS $function$
DECLARE
    instant CONSTANT timestamptz := clock_timestamp();
    waiting bigint[];
    looked bigint[];
BEGIN
    -- Those of tasks that have ended: whoever runs one again asks again.
    DELETE FROM headrace.waits w USING (
        SELECT x.task, x.step FROM headrace.waits x
        WHERE NOT x.over AND x.expires_at <= instant AND NOT EXISTS (SELECT FROM headrace.tasks t WHERE t.id = x.task)
        ORDER BY x.expires_at LIMIT most FOR UPDATE SKIP LOCKED
    ) AS old
    WHERE w.task = old.task AND w.step = old.step;
    waiting := ARRAY(
        SELECT t.id FROM headrace.waits w JOIN headrace.tasks t ON t.id = ANY (ARRAY[w.task])
        WHERE NOT w.over AND w.expires_at <= instant AND (t.state = 'blocked') IS TRUE AND (t.waiting_on LIKE 'event:%') IS TRUE
        ORDER BY w.expires_at LIMIT most);
    waiting := waiting || ARRAY(
        SELECT t.id
        FROM (
            SELECT DISTINCT e.name, e.key FROM (
                SELECT y.name, y.key FROM headrace.events y WHERE y.created_at > instant - interval '1 minute'
                ORDER BY y.created_at DESC LIMIT 1000
            ) AS e
        ) AS young
        JOIN headrace.waits w ON w.event = young.name AND w.key = young.key AND NOT w.over
        JOIN headrace.tasks t ON t.id = ANY (ARRAY[w.task])
        WHERE (t.state = 'blocked') IS TRUE AND (t.waiting_on LIKE 'event:%') IS TRUE
          AND headrace.next_event_v1(w.task, w.event, w.key, t.enqueued_at, w.expires_at) IS NOT NULL
        LIMIT greatest(most - cardinality(waiting), 0));
    looked := ARRAY(SELECT w.task FROM headrace.waits w WHERE w.task > behind ORDER BY w.task LIMIT most);
    waiting := waiting || ARRAY(
        SELECT t.id FROM headrace.waits w JOIN headrace.tasks t ON t.id = ANY (ARRAY[w.task])
        WHERE w.task > behind AND w.task <= looked[cardinality(looked)] AND (NOT w.over) IS TRUE AND (t.state = 'blocked') IS TRUE AND (t.waiting_on LIKE 'event:%') IS TRUE
          AND headrace.next_event_v1(w.task, w.event, w.key, t.enqueued_at, w.expires_at) IS NOT NULL
        ORDER BY w.task LIMIT greatest(most - cardinality(waiting), 0));
    RETURN QUERY SELECT headrace.resume_v1(waiting),
        CASE WHEN cardinality(looked) < most THEN 0 ELSE looked[cardinality(looked)] END;
END
$function$;
