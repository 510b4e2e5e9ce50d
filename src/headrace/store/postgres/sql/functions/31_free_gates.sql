-- Frees the slots that these tasks hold and readies whoever waited for them.
CREATE OR REPLACE FUNCTION headrace.free_gates_v1(ids bigint[], texts text[])
RETURNS void
LANGUAGE plpgsql
SET enable_seqscan = off
AS $function$
BEGIN
    PERFORM FROM headrace.gates g
    WHERE g.key IN (SELECT x ->> 0 || ':' || (x ->> 1) FROM unnest(texts) AS t(gates), json_array_elements(t.gates::json) AS x)
    ORDER BY g.key FOR UPDATE;
    DELETE FROM headrace.slots s WHERE s.task = ANY (ids);
    PERFORM headrace.wake_gates_v1(texts);
END
$function$;
