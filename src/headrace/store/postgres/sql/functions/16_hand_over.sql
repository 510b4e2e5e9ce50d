-- The idle worker to whom a new task may be given in the transaction of its enqueue, or NULL; it stands by no more.
-- Not past others: where the queue is paused or limited, or something of this priority became ready a moment ago, of which
-- word may still be on its way, the task waits for its turn. (What is older has been announced, and is being claimed.)
-- The look at that moment is bounded at both ends, so dead rows that an old transaction keeps do not make it longer.
-- A worker that has not been heard of for three seconds may be dead: what it was given would wait for its rescue.
CREATE OR REPLACE FUNCTION headrace.hand_over_v1(the_queue text, the_pool text, the_priority integer)
RETURNS text
LANGUAGE plpgsql
SET enable_seqscan = off
SET enable_bitmapscan = off
SET plan_cache_mode = force_generic_plan
AS $function$
DECLARE
    instant CONSTANT timestamptz := clock_timestamp();
    chosen text;
BEGIN
    SELECT s.worker INTO chosen
    FROM headrace.standbys s
    WHERE s.open AND s.renewed_at > instant - interval '3 seconds'
      AND the_queue = ANY (s.queues) AND the_pool = ANY (s.pools)
    ORDER BY s.worker  -- by its index: a scan of the table is forbidden here, and would be compiled each time (100 ms)
    LIMIT 1
    FOR UPDATE SKIP LOCKED;
    IF chosen IS NULL
        OR EXISTS (SELECT FROM headrace.queues q WHERE q.name = the_queue AND (q.paused OR q.settings <> '{}'))
        OR EXISTS (
            SELECT FROM headrace.tasks t
            WHERE t.queue = the_queue AND t.pool = the_pool AND t.lane = 0 AND t.priority = the_priority
              AND t.order_at > instant - interval '100 milliseconds' AND t.state = 'pending' AND t.ready_at IS NOT NULL
        )
    THEN
        RETURN NULL;
    END IF;
    UPDATE headrace.standbys s SET open = false WHERE s.worker = chosen;
    RETURN chosen;
END
$function$;
