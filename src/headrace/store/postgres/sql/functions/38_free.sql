-- Frees the keys and slots of tasks that have ended (they are in history by now).
CREATE OR REPLACE FUNCTION headrace.free_v1(ids bigint[])
RETURNS void
LANGUAGE plpgsql
SET enable_seqscan = off
AS $function$
DECLARE
    keyed_ids bigint[];
    gated_ids bigint[];
    texts text[];
BEGIN
    SELECT array_agg(h.id) FILTER (WHERE h.keyed), array_agg(h.id) FILTER (WHERE h.gates IS NOT NULL),
           array_agg(h.gates) FILTER (WHERE h.gates IS NOT NULL)
    INTO keyed_ids, gated_ids, texts
    FROM unnest(ids) AS x(id)
    -- One by one: see advance_v1.
    CROSS JOIN LATERAL (SELECT o.id, o.keyed, o.gates FROM headrace.history o WHERE o.id = x.id LIMIT 1) AS h;
    IF keyed_ids IS NOT NULL THEN
        -- Free at once, or when its time to live is over (an idem key has its expiry from the enqueue). The name of a
        -- unique key stays with the task under a scope of its own, as expired since ever, so that a manual retry knows
        -- which keys to take again, whoever takes them meanwhile.
        PERFORM FROM headrace.keys k WHERE k.task = ANY (keyed_ids) ORDER BY k.scope, k.key FOR UPDATE;
        INSERT INTO headrace.keys (scope, key, task, ttl, expires_at)
        SELECT 'ended:' || k.task, k.key, k.task, k.ttl, to_timestamp(0) FROM headrace.keys k
        WHERE k.task = ANY (keyed_ids) AND k.scope = 'unique'
        ON CONFLICT (scope, key) DO NOTHING;
        DELETE FROM headrace.keys k WHERE k.task = ANY (keyed_ids) AND k.ttl IS NULL AND k.expires_at IS NULL;
        UPDATE headrace.keys k SET expires_at = clock_timestamp() + make_interval(secs => k.ttl)
        WHERE k.task = ANY (keyed_ids) AND k.expires_at IS NULL;
    END IF;
    IF gated_ids IS NOT NULL THEN
        PERFORM headrace.free_gates_v1(gated_ids, texts);
    END IF;
END
$function$;
