-- Of ended tasks that are to run again, those that can: not where something that stays as it is ended the other way, nor
-- where one that cannot run itself is waited for.
CREATE OR REPLACE FUNCTION headrace.possible_v1(ids bigint[])
RETURNS bigint[]
LANGUAGE plpgsql
SET enable_seqscan = off
AS $function$
BEGIN
    RETURN ARRAY(
        WITH RECURSIVE chosen AS MATERIALIZED (
            SELECT x.id FROM unnest(ids) AS x(id)
        ), lost(id) AS (
            SELECT d.task
            FROM chosen c JOIN headrace.dependencies d ON d.task = ANY (ARRAY[c.id])
            JOIN headrace.history h ON h.id = ANY (ARRAY[d.upstream])
            WHERE d.upstream NOT IN (SELECT c.id FROM chosen c) AND CASE d.kind
                WHEN 0 THEN h.state <> 'completed' WHEN 1 THEN false ELSE h.state NOT IN ('failed', 'rejected') END
            UNION
            SELECT d.task
            FROM lost l JOIN headrace.history h ON h.id = ANY (ARRAY[l.id])
            JOIN headrace.dependencies d ON d.upstream = ANY (ARRAY[l.id])
            WHERE d.task IN (SELECT c.id FROM chosen c) AND CASE d.kind
                WHEN 0 THEN h.state <> 'completed' WHEN 1 THEN false ELSE h.state NOT IN ('failed', 'rejected') END
        )
        SELECT c.id FROM chosen c WHERE c.id NOT IN (SELECT l.id FROM lost l) ORDER BY c.id
    );
END
$function$;
