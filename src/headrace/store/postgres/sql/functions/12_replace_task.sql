-- Gives a task that nobody has claimed other content, another time and another owner; false when it is too late for that.
CREATE OR REPLACE FUNCTION headrace.replace_task_v1(holder bigint, content json, instant timestamptz)
RETURNS boolean
LANGUAGE plpgsql
SET enable_seqscan = off
AS $function$
BEGIN
    UPDATE headrace.tasks t
    SET arguments = new.arguments, codec = new.codec, version = new.version, options = new.options,
        queue = new.queue, pool = new.pool, priority = new.priority, max_attempts = new.max_attempts,
        gates = new.gates, order_key = new.order_key, max_age = new.max_age,
        dead_letter = coalesce(new.dead_letter, false),
        enqueued_at = instant,
        expires_at = instant + make_interval(secs => new.max_age),
        eligible_at = due.at,
        order_at = CASE WHEN t.job IS NULL THEN due.at ELSE t.order_at END,
        ready_at = CASE WHEN due.at <= instant AND t.state = 'pending' THEN instant END,
        owner = coalesce(new.owner, (SELECT j.owner FROM headrace.jobs j WHERE j.id = t.job)),
        waiting_on = NULL
    FROM json_to_record(content) AS new(
            queue text, pool text, priority integer, delay double precision, run_at timestamptz, max_attempts integer,
            max_age double precision, codec text, version integer, arguments text, options text, gates text,
            order_key text, dead_letter boolean, max_wait double precision, owner text
        ),
        LATERAL (SELECT s.created_at FROM headrace.tasks s WHERE s.id = holder) AS first,
        -- A debounced task is put off by every event, but never beyond its first creation + max_wait.
        LATERAL (SELECT least(
            coalesce(new.run_at, instant + make_interval(secs => greatest(new.delay, 0))),
            first.created_at + make_interval(secs => new.max_wait)
        ) AS at) AS due
    WHERE t.id = holder AND t.state IN ('pending', 'pending_approval');
    RETURN FOUND;
END
$function$;
