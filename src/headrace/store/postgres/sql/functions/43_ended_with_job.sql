-- Of tasks that ended with their job only those have to be looked at for which somebody outside waits (they are marked
-- as `keyed`, see suspended_v1): all that waits inside has ended as well.
CREATE OR REPLACE FUNCTION headrace.ended_with_job_v1(ids bigint[], of_jobs bigint[] DEFAULT NULL)
RETURNS void
LANGUAGE plpgsql
SET enable_seqscan = off
AS $function$
DECLARE
    awaited bigint[] := ARRAY(SELECT h.id FROM headrace.history h WHERE h.id = ANY (coalesce(of_jobs, ids)) AND h.keyed);
BEGIN
    IF awaited <> '{}' THEN
        PERFORM headrace.advance_v1(awaited);
    END IF;
    PERFORM headrace.free_v1(ids);
END
$function$;
