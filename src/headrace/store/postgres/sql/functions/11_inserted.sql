-- What follows the insert of new tasks, in its transaction: nobody is born again, and listeners are woken. Says false:
-- insert_plain asks it for more rows.
-- A try that stood still on its way here may be overtaken by its repeat, whose tasks may have run and left the table: no
-- key stops the late insert then. A repeat raises the counter `repeats` before it writes. The caller read the counter
-- before its first try; if it moved, history is asked. In this order, and in a function for its fresh snapshot: once
-- `first` is in the table, no repeat can write it until this transaction is over; and a repeat that wrote it before has
-- raised the counter before. One task stands for all of a call, because a repeat writes all of them.
CREATE OR REPLACE FUNCTION headrace.inserted_v1(first bigint, repeats bigint, notify text[])
RETURNS boolean
LANGUAGE plpgsql
AS $function$
BEGIN
    IF pg_sequence_last_value('headrace.repeats'::regclass) IS DISTINCT FROM repeats
        AND headrace.any_ended_v1(ARRAY[first])
    THEN
        RAISE EXCEPTION 'task % has ended: this is a late try of an enqueue that was repeated', first
            USING ERRCODE = 'unique_violation';
    END IF;
    IF notify <> '{}' THEN
        PERFORM pg_notify('headrace', queue) FROM unnest(notify) AS queue;
    END IF;
    RETURN false;
END
$function$;
