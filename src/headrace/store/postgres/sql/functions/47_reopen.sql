-- Opens a new run of ended tasks, and of those that were cancelled because one of them ended as it did; returns all that
-- it changed. See open_tasks_v1 for what stays where it is.
CREATE OR REPLACE FUNCTION headrace.reopen_v1(ids bigint[])
RETURNS bigint[]
LANGUAGE plpgsql
SET enable_seqscan = off
AS $function$
BEGIN
    RETURN headrace.open_tasks_v1(ARRAY(
        WITH RECURSIVE wanted(id) AS (
            SELECT h.id FROM headrace.history h
            WHERE h.id = ANY (ids) AND (h.state IN ('failed', 'cancelled', 'completed')) IS TRUE
            UNION
            SELECT h.id
            FROM wanted w JOIN headrace.dependencies d ON d.upstream = ANY (ARRAY[w.id]) AND d.kind <> 1
            JOIN headrace.history h ON h.id = ANY (ARRAY[d.task])
            WHERE (h.state = 'cancelled') IS TRUE AND h.reason IN ('upstream_failed', 'skipped')
        )
        SELECT w.id FROM wanted w
    ), false);
END
$function$;
