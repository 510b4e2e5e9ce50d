-- Writes task rows as they are given; returns the ids that were new. Who wants keys, counters or wake-ups calls enqueue.
-- One that is `blocked` waits for others: who gives it that writes its edges in the same transaction (link_tasks).
-- `repeated` says that an earlier try may have been committed: what already ended must not be born again.
CREATE OR REPLACE FUNCTION headrace.insert_tasks_v1(given json, ids bigint[], instant timestamptz, repeated boolean)
RETURNS SETOF bigint
LANGUAGE plpgsql
SET enable_seqscan = off
AS $function$
BEGIN
    RETURN QUERY
    INSERT INTO headrace.tasks AS made (
        id, name, kind, queue, pool, priority, state, max_attempts, job, critical, dead_letter, arguments, codec,
        version, options, gates, order_key, keyed, max_age, created_at, enqueued_at, eligible_at, order_at, expires_at, ready_at,
        waiting_on, owner
    )
    SELECT
        ids[t.place], t.name, t.kind, t.queue, t.pool, t.priority,
        CASE WHEN t.blocked THEN 'blocked' WHEN t.approval THEN 'pending_approval' ELSE 'pending' END,
        t.max_attempts, t.job, t.critical, coalesce(t.dead_letter, false), t.arguments, t.codec, t.version, t.options, t.gates, t.order_key,
        coalesce(t.keyed, false), t.max_age, instant, instant, due.at,
        -- A job's tasks go in the order of their jobs, without a join in the claim.
        coalesce((SELECT j.created_at FROM headrace.jobs j WHERE j.id = t.job), due.at),
        instant + make_interval(secs => t.max_age),
        CASE WHEN due.at <= instant AND NOT t.approval AND t.blocked IS NOT TRUE THEN instant END,
        CASE WHEN t.blocked AND t.approval THEN 'approval' END,
        -- And are the job's owner's, unless they say whose they are.
        CASE WHEN t.owner IS NULL AND t.job IS NOT NULL THEN (SELECT j.owner FROM headrace.jobs j WHERE j.id = t.job)
             ELSE t.owner END
    FROM ROWS FROM (
        json_to_recordset(given) AS (
            name text, kind text, queue text, pool text, priority integer, delay double precision, run_at timestamptz,
            max_attempts integer, max_age double precision, codec text, version integer, arguments text, options text,
            gates text, order_key text, keyed boolean, job bigint, critical boolean,
            dead_letter boolean, approval boolean, blocked boolean, owner text
        )
    ) WITH ORDINALITY AS t (
        name, kind, queue, pool, priority, delay, run_at, max_attempts, max_age, codec, version, arguments, options,
        gates, order_key, keyed, job, critical, dead_letter, approval, blocked, owner, place
    )
    CROSS JOIN LATERAL (
        SELECT coalesce(t.run_at, instant + make_interval(secs => greatest(t.delay, 0))) AS at
    ) AS due
    -- One snapshot for both: what moves from one table to the other is in one of them.
    WHERE NOT repeated OR (
        NOT EXISTS (SELECT FROM headrace.tasks l WHERE l.id = ids[t.place])
        AND NOT EXISTS (SELECT FROM headrace.history h WHERE h.id = ids[t.place])
    )
    ON CONFLICT (id) DO NOTHING
    RETURNING made.id;
END
$function$;
