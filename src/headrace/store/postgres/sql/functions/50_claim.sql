-- Takes the best ready tasks of each want: one probe of the ready index in order per want, never a sort of the backlog.
-- (568 ms per claim at a million pending with queue = ANY and a global sort, 0.8 ms this way.) The settings hold the
-- plan: one that was cached while the table was empty would scan it.
-- A row that is locked stays where it is, so its place (ctid) leads back to it without a second way through an index. One
-- that changed on its way to the lock is not found there, and waits for the next claim.
-- The other functions look rows up by ANY (ARRAY[id]): an equality would let the planner read the whole table in the
-- order of its ids, which it takes for empty when it was analysed so (2,100 us a task instead of 40).
-- The answer is in the order of the wants, and of each want best first: that is the order in which `picked` is gathered
-- and, with the settings, the one in which it can be gone through. (A sort would cost 0.7 us a task.)
-- A want may be given as ranges of priorities, best first, some of which begin above a mark (order_at, id); see
-- low_water.py. A mark of the last second is not believed: commits do not come in the order of their instants.
CREATE OR REPLACE FUNCTION headrace.claim_v1(
    the_worker text, queues text[], pools text[], lanes smallint[], counts integer[],
    range_wants integer[] DEFAULT NULL, range_highs integer[] DEFAULT NULL, range_lows integer[] DEFAULT NULL,
    range_order_ats timestamptz[] DEFAULT NULL, range_ids bigint[] DEFAULT NULL
)
RETURNS TABLE (
    id bigint, claim_no integer, name text, kind text, queue text, pool text, lane smallint, priority integer,
    arguments text, codec text, version integer, options text, attempt integer, losses integer, max_attempts integer,
    run_no integer, job bigint, gated boolean, expired boolean, state text, order_at timestamptz, waited double precision
)
LANGUAGE plpgsql
SET enable_tidscan = on
SET enable_seqscan = off
SET enable_bitmapscan = off
SET enable_hashjoin = off
SET enable_mergejoin = off
SET plan_cache_mode = force_generic_plan
AS $function$
#variable_conflict use_column
DECLARE
    instant CONSTANT timestamptz := clock_timestamp();
    believed CONSTANT timestamptz := instant - interval '1 second';
BEGIN
    IF range_wants IS NULL THEN
        SELECT array_agg(w), array_agg(2147483647), array_agg(-2147483648), array_agg(NULL::timestamptz), array_agg(NULL::bigint)
        INTO range_wants, range_highs, range_lows, range_order_ats, range_ids
        FROM generate_subscripts(queues, 1) AS w;
    END IF;
    -- What became due since is ready first: one probe of an index, and nothing more while nothing is due.
    IF EXISTS (
        SELECT FROM headrace.tasks t
        WHERE t.state = 'pending' AND t.ready_at IS NULL AND t.waiting_on IS NULL AND t.eligible_at <= instant
    ) THEN
        PERFORM headrace.promote_v1(500);
    END IF;
    RETURN QUERY
    WITH clock AS MATERIALIZED (
        SELECT clock_timestamp() AS at
    ), known AS MATERIALIZED (
        -- Queues of which somebody wanted something at run time: few, or none.
        SELECT q.name, q.paused, q.settings <> '{}' AS limited FROM headrace.queues q WHERE q.name = ANY (queues)
    ), wanted AS MATERIALIZED (
        SELECT w.* FROM unnest(queues, pools, lanes, counts) WITH ORDINALITY AS w(queue, pool, lane, n, place)
        WHERE NOT EXISTS (SELECT FROM known k WHERE k.name = w.queue AND k.paused)
    ), picked AS MATERIALIZED (
        SELECT best.place
        FROM wanted w
        CROSS JOIN LATERAL (
            SELECT found.place
            FROM unnest(range_wants, range_highs, range_lows, range_order_ats, range_ids) AS r(want, high, low, order_at, id)
            CROSS JOIN LATERAL (
                SELECT above.place FROM (
                    SELECT t.ctid AS place FROM headrace.tasks t
                    WHERE r.order_at IS NOT NULL AND t.queue = w.queue AND t.pool = w.pool AND t.lane = w.lane
                      AND t.state = 'pending' AND t.ready_at IS NOT NULL
                      AND t.priority = r.high AND (t.order_at, t.id) > (least(r.order_at, believed), r.id)
                    ORDER BY t.priority DESC, t.order_at, t.id
                    LIMIT w.n
                    FOR UPDATE SKIP LOCKED
                ) AS above
                UNION ALL
                SELECT whole.place FROM (
                    SELECT t.ctid AS place FROM headrace.tasks t
                    WHERE r.order_at IS NULL AND t.queue = w.queue AND t.pool = w.pool AND t.lane = w.lane
                      AND t.state = 'pending' AND t.ready_at IS NOT NULL
                      AND t.priority BETWEEN r.low AND r.high
                    ORDER BY t.priority DESC, t.order_at, t.id
                    LIMIT w.n
                    FOR UPDATE SKIP LOCKED
                ) AS whole
            ) AS found
            WHERE r.want = w.place
            LIMIT w.n
        ) AS best
    ), taken AS (
        UPDATE headrace.tasks t
        SET state = 'claimed', claim_no = t.claim_no + 1, worker = the_worker, claimed_at = (SELECT c.at FROM clock c), ready_at = NULL,
            started_at = NULL, progress = NULL, reason = NULL
        FROM picked
        WHERE t.ctid = picked.place
        RETURNING t.id, t.claim_no, t.name, t.kind, t.queue, t.pool, t.lane, t.priority, t.arguments, t.codec, t.version,
                  t.options, t.attempt, t.losses, t.max_attempts, t.run_no, t.job, t.gates, t.expires_at, t.state,
                  t.order_at, t.eligible_at
    )
    SELECT t.id, t.claim_no, t.name, t.kind, t.queue, t.pool, t.lane, t.priority, t.arguments, t.codec, t.version,
           t.options, t.attempt, t.losses, t.max_attempts, t.run_no, t.job,
           t.gates IS NOT NULL OR t.queue IN (SELECT k.name FROM known k WHERE k.limited),
           coalesce(t.expires_at <= (SELECT c.at FROM clock c), false), t.state, t.order_at,
           greatest(extract(epoch FROM (SELECT c.at FROM clock c) - t.eligible_at), 0)::double precision
    FROM taken t
    -- Once, in a function: a plan that had this in it would cost every claim 0.2 ms, and most tasks are of no job.
    WHERE (
        SELECT CASE WHEN count(*) > 0 THEN headrace.start_jobs_v1(array_agg(DISTINCT c.job)) ELSE true END
        FROM taken c WHERE c.job IS NOT NULL
    );
END
$function$;
