-- As advance_v1, for tasks that ended with their job: all that waits for them inside has ended as well. Those for which
-- somebody outside waits are marked as `keyed` (see suspending_v1).
CREATE OR REPLACE FUNCTION headrace.advance_awaited_v1(ids bigint[])
RETURNS void
LANGUAGE plpgsql
SET enable_seqscan = off
AS $function$
DECLARE
    awaited bigint[] := ARRAY(
        SELECT x.id FROM unnest(ids) AS x(id)
        WHERE (SELECT o.keyed FROM headrace.history o WHERE o.id = x.id LIMIT 1));
BEGIN
    IF awaited <> '{}' THEN
        PERFORM headrace.advance_v1(awaited);
    END IF;
END
$function$;
