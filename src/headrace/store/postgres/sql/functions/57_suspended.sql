-- After tasks gave their slots back, which are blocked now: what they wait for, each a task or one of its own waits, is
-- written down. Where that has come meanwhile they are free at once.
CREATE OR REPLACE FUNCTION headrace.suspended_v1(tasks bigint[], children bigint[], steps text[])
RETURNS void
LANGUAGE plpgsql
SET enable_seqscan = off
AS $function$
DECLARE
    instant CONSTANT timestamptz := clock_timestamp();
    blocked bigint[] := ARRAY(SELECT t.id FROM headrace.tasks t WHERE t.id = ANY (tasks) AND (t.state = 'blocked') IS TRUE);
BEGIN
    INSERT INTO headrace.dependencies (task, place, upstream, kind)
    SELECT s.task, coalesce((SELECT max(d.place) + 1 FROM headrace.dependencies d WHERE d.task = s.task), 0), s.child, 1
    FROM unnest(tasks, children) AS s(task, child)
    WHERE s.task = ANY (blocked) AND s.child <> s.task
      -- Also where it has ended: what it returned is kept as long as somebody may ask for it.
      AND (EXISTS (SELECT FROM headrace.tasks c WHERE c.id = s.child)
           OR EXISTS (SELECT FROM headrace.history c WHERE c.id = s.child))
      AND NOT EXISTS (SELECT FROM headrace.dependencies d WHERE d.upstream = s.child AND d.task = s.task);
    -- One that ended, is run again and ends again has its parent to resume: see suspending_v1.
    UPDATE headrace.history h SET keyed = true WHERE h.id = ANY (children) AND h.job IS NULL AND NOT h.keyed;
    UPDATE headrace.tasks t SET waiting_on = 'event:' || w.event || '/' || w.key
    FROM unnest(tasks, steps) AS s(task, step) JOIN headrace.waits w ON w.task = ANY (ARRAY[s.task]) AND w.step = s.step
    WHERE t.id = ANY (ARRAY[s.task]) AND (t.state = 'blocked') IS TRUE AND NOT w.over AND coalesce(w.expires_at, 'infinity') > instant
      AND headrace.next_event_v1(w.task, w.event, w.key, t.enqueued_at, w.expires_at) IS NULL;
    PERFORM headrace.count_barriers_v1(ARRAY(
        SELECT b.id FROM unnest(blocked) AS b(id) WHERE EXISTS (SELECT FROM headrace.dependencies d WHERE d.task = b.id)));
    PERFORM headrace.free_tasks_v1(ARRAY(
        SELECT s.task FROM unnest(tasks, steps) AS s(task, step)
        WHERE s.task = ANY (blocked)
          -- Who waits for an event does not wait for what it waited for before it began, and somebody ran again.
          AND (s.step IS NOT NULL OR NOT EXISTS (
              SELECT FROM headrace.barriers b WHERE b.task = s.task AND b.remaining > 0))));
END
$function$;
