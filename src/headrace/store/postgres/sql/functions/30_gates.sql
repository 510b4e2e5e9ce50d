-- Readies parked tasks of these gates (JSON texts of core.limits) as far as there is room. Under the gates' row locks,
-- so that a task that is being parked at this moment is either seen here or sees the room itself.
CREATE OR REPLACE FUNCTION headrace.wake_gates_v1(texts text[])
RETURNS integer
LANGUAGE plpgsql
SET enable_seqscan = off
AS $function$
DECLARE
    gate record;
    room integer;
    woken integer := 0;
    here integer;
BEGIN
    PERFORM FROM headrace.gates g
    WHERE g.key IN (SELECT x ->> 0 || ':' || (x ->> 1) FROM unnest(texts) AS t(gates), json_array_elements(t.gates::json) AS x)
    ORDER BY g.key FOR UPDATE;
    FOR gate IN
        -- A limit that was set at run time is what it is now, not what it was when a task came; lifted, all may go on.
        SELECT x ->> 0 AS kind, x ->> 1 AS name, x ->> 0 || ':' || (x ->> 1) AS key,
               max(CASE WHEN x ->> 1 LIKE '@queue:%' THEN coalesce(
                   (SELECT (q.settings::json ->> 'limit')::integer FROM headrace.queues q WHERE q.name = substr(x ->> 1, 8)),
                   1000000
               ) ELSE (x ->> 2)::integer END) AS n
        FROM unnest(texts) AS t(gates), json_array_elements(t.gates::json) AS x
        WHERE x ->> 0 <> 'rate' GROUP BY 1, 2, 3 ORDER BY 3
    LOOP
        SELECT gate.n - count(*) INTO room FROM headrace.slots s WHERE s.key = gate.key;
        CONTINUE WHEN room <= 0;
        WITH next AS (
            -- SKIP LOCKED: whoever holds such a row will look at this gate after us, when we let go of it.
            SELECT t.id FROM headrace.tasks t
            WHERE t.waiting_on = gate.key AND t.state = 'pending'
              AND (gate.kind <> 'order' OR t.id = (
                  SELECT o.id FROM headrace.tasks o WHERE o.order_key = gate.name ORDER BY o.created_at, o.id LIMIT 1))
            ORDER BY t.order_at, t.id LIMIT least(room, 1000) FOR UPDATE SKIP LOCKED
        ), readied AS (
            UPDATE headrace.tasks t SET ready_at = clock_timestamp(), waiting_on = NULL FROM next WHERE t.id = ANY (ARRAY[next.id])
            RETURNING t.queue
        ), told AS (
            SELECT pg_notify('headrace', queue) FROM (SELECT DISTINCT queue FROM readied) AS q
        )
        SELECT (SELECT count(*) FROM readied) + 0 * (SELECT count(*) FROM told) INTO here;
        woken := woken + here;
    END LOOP;
    RETURN woken;
END
$function$;
