-- Tasks that wait for an event go on; how many. They keep their places.
CREATE OR REPLACE FUNCTION headrace.resume_v1(ids bigint[])
RETURNS integer
LANGUAGE plpgsql
SET enable_seqscan = off
AS $function$
DECLARE
    resumed bigint[];
BEGIN
    PERFORM FROM headrace.tasks t
    WHERE t.id = ANY (ids) AND (t.state = 'blocked') IS TRUE AND (t.waiting_on LIKE 'event:%') IS TRUE ORDER BY t.id FOR UPDATE;
    WITH found AS (
        UPDATE headrace.tasks t SET waiting_on = NULL
        WHERE t.id = ANY (ids) AND (t.state = 'blocked') IS TRUE AND (t.waiting_on LIKE 'event:%') IS TRUE RETURNING t.id
    )
    SELECT array_agg(f.id) INTO resumed FROM found f;
    IF resumed IS NULL THEN
        RETURN 0;
    END IF;
    PERFORM headrace.free_tasks_v1(resumed);
    RETURN cardinality(resumed);
END
$function$;
