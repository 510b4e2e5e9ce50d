-- What a wait of a task has come to: `fate` is lost (the claim no longer holds), none (nothing yet), or told, by the
-- value that is its checkpoint now.
CREATE OR REPLACE FUNCTION headrace.receive_v1(
    the_worker text, the_task bigint, the_claim_no integer, the_step text, the_event text, the_key text,
    timeout double precision
)
RETURNS TABLE (fate text, value text)
LANGUAGE plpgsql
SET enable_seqscan = off
AS $function$
#variable_conflict use_column
DECLARE
    holder record;
    wait record;
    instant timestamptz;
    taken_event bigint;
BEGIN
    -- Two questions of one task at once are one after the other: no event is taken twice.
    SELECT t.claim_no, t.attempt, t.enqueued_at INTO holder FROM headrace.tasks t
    WHERE t.id = the_task AND t.claim_no = the_claim_no AND t.worker = the_worker
      AND t.state IN ('claimed', 'running', 'paused', 'cancelling')
    FOR NO KEY UPDATE;
    IF NOT FOUND THEN
        RETURN QUERY SELECT 'lost', NULL::text;
        RETURN;
    END IF;
    RETURN QUERY SELECT 'told', c.value FROM headrace.checkpoints c WHERE c.task = the_task AND c.name = the_step;
    IF FOUND THEN
        RETURN;
    END IF;
    instant := clock_timestamp();
    INSERT INTO headrace.waits AS w (task, step, event, key, expires_at)
    VALUES (the_task, the_step, the_event, the_key, instant + make_interval(secs => timeout))
    ON CONFLICT (task, step) DO UPDATE SET event = excluded.event, key = excluded.key, over = false, taken = NULL
    RETURNING w.expires_at INTO wait;
    taken_event := headrace.next_event_v1(the_task, the_event, the_key, holder.enqueued_at, wait.expires_at);
    IF taken_event IS NULL AND coalesce(wait.expires_at, 'infinity') > instant THEN
        RETURN QUERY SELECT 'none', NULL::text;
        RETURN;
    END IF;
    UPDATE headrace.waits w SET over = true, taken = taken_event WHERE w.task = the_task AND w.step = the_step;
    RETURN QUERY
    INSERT INTO headrace.checkpoints AS c (task, name, value, claim_no, attempt, created_at)
    VALUES (the_task, the_step,
            -- The payload is text within the text: what an app encrypts is no JSON.
            '{"payload":' || coalesce((SELECT to_json(e.payload)::text FROM headrace.events e WHERE e.id = taken_event), 'null') || '}',
            holder.claim_no, holder.attempt + 1, instant)
    RETURNING 'told', c.value;
END
$function$;
