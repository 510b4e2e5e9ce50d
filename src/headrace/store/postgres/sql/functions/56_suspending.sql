-- Before tasks give their slots back to wait: whatever they wait for is held, so that it does not come unseen. A task
-- whose end somebody waits for is marked as `keyed`, by which its finish knows that there is something to do.
CREATE OR REPLACE FUNCTION headrace.suspending_v1(tasks bigint[], children bigint[], steps text[])
RETURNS void
LANGUAGE plpgsql
SET enable_seqscan = off
AS $function$
BEGIN
    PERFORM FROM headrace.waits w
    WHERE w.task = ANY (tasks) AND w.step = ANY (steps) ORDER BY w.task, w.step FOR UPDATE;
    PERFORM FROM headrace.tasks t WHERE t.id = ANY (children) ORDER BY t.id FOR NO KEY UPDATE;
    UPDATE headrace.tasks t SET keyed = true WHERE t.id = ANY (children) AND NOT t.keyed;
    PERFORM headrace.hold_upstreams_v1(
        children || ARRAY(SELECT DISTINCT d.upstream FROM headrace.dependencies d WHERE d.task = ANY (tasks)));
END
$function$;
