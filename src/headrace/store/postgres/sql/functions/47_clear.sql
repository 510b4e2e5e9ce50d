-- Opens a new run of a task that has ended and of everything below it, whatever became of that; returns all of them.
-- HR006: one of them is in a worker's hands, or the task has not ended, or cannot run again. HR002: no such task.
CREATE OR REPLACE FUNCTION headrace.clear_v1(root bigint)
RETURNS bigint[]
LANGUAGE plpgsql
SET enable_seqscan = off
AS $function$
DECLARE
    below bigint[];
    live bigint[];
    blocked bigint[];
    opened bigint[];
    other record;
BEGIN
    below := ARRAY(
        WITH RECURSIVE below(id) AS (
            VALUES (root)
            UNION
            SELECT d.task FROM below b JOIN headrace.dependencies d ON d.upstream = ANY (ARRAY[b.id])
        )
        SELECT b.id FROM below b);
    live := ARRAY(SELECT t.id FROM headrace.tasks t WHERE t.id = ANY (below) ORDER BY t.id FOR UPDATE);
    SELECT t.id, t.state INTO other FROM headrace.tasks t
    WHERE t.id = ANY (live) AND (t.id = root OR t.worker IS NOT NULL) ORDER BY t.id <> root LIMIT 1;
    IF FOUND THEN
        RAISE EXCEPTION 'task % is %', other.id, other.state
            USING ERRCODE = 'HR006', DETAIL = other.id::text, HINT = other.state;
    END IF;
    PERFORM FROM headrace.history h WHERE h.id = root;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'no task %', root USING ERRCODE = 'HR002', DETAIL = root::text;
    END IF;
    PERFORM headrace.hold_upstreams_v1(ARRAY(SELECT DISTINCT d.upstream FROM headrace.dependencies d WHERE d.task = ANY (below)));
    opened := headrace.open_tasks_v1(ARRAY(SELECT unnest(below) EXCEPT SELECT unnest(live)), true);
    IF NOT root = ANY (opened) THEN
        RAISE EXCEPTION 'task % cannot run again', root USING ERRCODE = 'HR006', DETAIL = root::text;
    END IF;
    -- Those that had not begun wait again. One of them may hang on nothing but what stays as it is.
    PERFORM headrace.count_barriers_v1(live);
    blocked := ARRAY(SELECT b.task FROM headrace.barriers b WHERE b.task = ANY (live) AND b.remaining > 0);
    UPDATE headrace.tasks t
    SET state = 'blocked', ready_at = NULL, enqueued_at = clock_timestamp(),
        waiting_on = CASE WHEN t.state = 'pending_approval' OR t.waiting_on = 'approval' OR EXISTS (
            SELECT FROM headrace.checkpoints c WHERE c.task = t.id AND c.name = 'approval') THEN 'approval' END
    WHERE t.id = ANY (blocked);
    DELETE FROM headrace.checkpoints c WHERE c.task = ANY (opened || blocked);
    DELETE FROM headrace.waits w WHERE w.task = ANY (opened || blocked);
    RETURN opened || blocked;
END
$function$;
