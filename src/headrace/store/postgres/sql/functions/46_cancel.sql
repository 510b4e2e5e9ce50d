-- Ends tasks that nobody holds, marks the held ones `cancelling` and tells their workers; one answer for each id.
CREATE OR REPLACE FUNCTION headrace.cancel_v1(ids bigint[], the_reason text)
RETURNS TABLE (id bigint, answer text)
LANGUAGE plpgsql
SET enable_seqscan = off
AS $function$
#variable_conflict use_column
DECLARE
    unheld bigint[];
    held bigint[];
BEGIN
    SELECT array_agg(t.id) FILTER (WHERE t.worker IS NULL), array_agg(t.id) FILTER (WHERE t.worker IS NOT NULL)
    INTO unheld, held
    FROM (SELECT x.id, x.worker FROM headrace.tasks x WHERE x.id = ANY (ids) ORDER BY x.id FOR UPDATE) AS t;
    IF unheld IS NOT NULL THEN
        PERFORM headrace.ended_v1(headrace.end_tasks_v1(unheld, 'cancelled', the_reason, NULL, NULL));
    END IF;
    IF held IS NOT NULL THEN
        UPDATE headrace.tasks t SET state = 'cancelling', cancelling_at = clock_timestamp(), reason = the_reason
        WHERE t.id = ANY (held) AND t.state IN ('claimed', 'running', 'paused');
        PERFORM pg_notify('headrace_cancel', w.worker)
        FROM (SELECT DISTINCT t.worker FROM headrace.tasks t WHERE t.id = ANY (held)) AS w;
    END IF;
    RETURN QUERY
    SELECT wanted.id, CASE
        WHEN wanted.id = ANY (unheld) THEN 'cancelled'
        WHEN wanted.id = ANY (held) THEN 'cancelling'
        WHEN EXISTS (SELECT FROM headrace.history h WHERE h.id = wanted.id) THEN 'too_late'
        ELSE 'unknown' END
    FROM unnest(ids) AS wanted(id);
END
$function$;
