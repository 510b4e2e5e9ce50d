-- Applies settlements and claims what is wanted next, in one round trip and one transaction; the finish comes first, so
-- that what it readies can be claimed. Every write is fenced by the claim. A settlement is an entry in each of the first
-- five arrays, and has the rest in common with its kind, whose place in the other arrays it names.
-- The holder is compared so that no index on it is used: by statistics from an idle hour one holder has hardly a row,
-- and a join from there compares every settlement with every task that is held (800 us a task instead of 28).
-- Returns the claimed tasks, preceded by the settlements that the fence did not let through (state 'refused') and by the
-- jobs that ended with this (state 'job ended'; `name` is how, `waited` how long it took, `arguments` its hook); after
-- these a row of state 'releasing' says that `release` has something to do.
-- Elements are taken by their place where there are many: each array of an unnest() is first copied into a store of its
-- own (1 us a task).
CREATE OR REPLACE FUNCTION headrace.finish_v1(
    the_worker text, tasks bigint[], claim_nos integer[], kinds integer[], ran_fors double precision[], results text[],
    states text[], reasons text[], chargeds boolean[], suspects boolean[], delays double precision[], lanes smallint[],
    attempts text[], result_refs text[], result_ttls double precision[], error_classes text[], error_messages text[],
    tracebacks text[], exit_codes integer[], dead_letters boolean[], recorded_bys text[], executors text[],
    want_queues text[], want_pools text[], want_lanes smallint[], want_counts integer[],
    range_wants integer[], range_highs integer[], range_lows integer[], range_order_ats timestamptz[], range_ids bigint[]
)
RETURNS TABLE (
    id bigint, claim_no integer, name text, kind text, queue text, pool text, lane smallint, priority integer,
    arguments text, codec text, version integer, options text, attempt integer, losses integer, max_attempts integer,
    run_no integer, job bigint, gated boolean, expired boolean, state text, order_at timestamptz, waited double precision
)
LANGUAGE plpgsql
SET enable_seqscan = off
SET enable_bitmapscan = off
SET enable_hashjoin = off
SET enable_mergejoin = off
SET plan_cache_mode = force_generic_plan
AS $function$
#variable_conflict use_column
DECLARE
    -- Read before the rows are locked: a start that held a row meanwhile may be younger, hence the `greatest` below.
    instant CONSTANT timestamptz := clock_timestamp();
    requeued bigint[];
    readied text[];
    gated_ids bigint[];
    texts text[];
    ended bigint[];
    linked bigint[];
    with_jobs bigint[];
    n_completed bigint;
    n_failed bigint;
BEGIN
    IF 'failed' = ANY (states) THEN
        -- A critical failure ends its job and with it every other task of the job. They are locked before our own rows:
        -- two such finishes would otherwise each hold what the other one waits for.
        PERFORM FROM headrace.tasks t
        WHERE t.job IN (
            SELECT f.job FROM unnest(tasks, kinds) AS s(task, kind) JOIN headrace.tasks f ON f.id = ANY (ARRAY[s.task])
            WHERE states[s.kind] = 'failed' AND f.job IS NOT NULL AND f.critical
              -- Where others wait for just this, the job goes on.
              AND NOT EXISTS (SELECT FROM headrace.dependencies d WHERE d.upstream = f.id AND d.kind <> 0)
        )
        ORDER BY t.id FOR UPDATE;
    END IF;
    IF states && ARRAY['pending', 'blocked'] THEN
        WITH input AS (
            SELECT s.task, s.claim_no, s.ran_for, states[s.kind] AS state, chargeds[s.kind] AS charged,
                   suspects[s.kind] AS suspect, delays[s.kind] AS delay, lanes[s.kind] AS lane,
                   attempts[s.kind] AS attempt_state, error_classes[s.kind] AS error_class,
                   error_messages[s.kind] AS error_message, tracebacks[s.kind] AS traceback,
                   exit_codes[s.kind] AS exit_code, recorded_bys[s.kind] AS recorded_by, executors[s.kind] AS executor
            FROM unnest(tasks, claim_nos, kinds, ran_fors) AS s(task, claim_no, kind, ran_for)
            WHERE states[s.kind] IN ('pending', 'blocked')
        ), before AS MATERIALIZED (
            -- Cancelled meanwhile, or too old when it would run: the second statement ends it.
            SELECT t.id, t.run_no, t.attempt, t.claimed_at, t.started_at, s.*
            FROM input s JOIN headrace.tasks t ON t.id = ANY (ARRAY[s.task]) AND t.claim_no = s.claim_no
            WHERE (t.worker = the_worker) IS TRUE AND t.state IN ('claimed', 'running', 'paused')
              AND (t.expires_at IS NULL OR t.expires_at > instant + make_interval(secs => s.delay)
                   OR s.attempt_state = 'suspended')
            FOR UPDATE OF t
        ), returned AS (
            UPDATE headrace.tasks t
            SET state = b.state, worker = NULL, attempt = t.attempt + b.charged::integer,
                losses = t.losses + b.suspect::integer, lane = coalesce(b.lane, t.lane),
                claimed_at = NULL, started_at = NULL, progress = NULL,
                -- What is given back at once and uncharged keeps its place in the queue, and so does what sleeps.
                eligible_at = CASE WHEN b.charged OR b.delay > 0
                                   THEN instant + make_interval(secs => b.delay) ELSE t.eligible_at END,
                order_at = CASE WHEN t.job IS NULL AND (b.charged OR b.delay > 0)
                                     AND b.attempt_state IS DISTINCT FROM 'suspended'
                                THEN instant + make_interval(secs => b.delay) ELSE t.order_at END,
                -- One that sleeps was in time: its age counts from its waking on.
                expires_at = CASE WHEN b.attempt_state = 'suspended'
                                  THEN instant + make_interval(secs => b.delay + t.max_age) ELSE t.expires_at END,
                ready_at = CASE WHEN b.state = 'pending' AND b.delay <= 0 THEN instant END
            FROM before b WHERE t.id = ANY (ARRAY[b.id])
            RETURNING t.id, t.gates, t.queue, t.ready_at
        ), tried AS (
            INSERT INTO headrace.attempts AS a (
                task, claim_no, run_no, attempt, state, charged, worker, executor, claimed_at, started_at, finished_at,
                error_class, error_message, traceback, exit_code, recorded_by
            )
            SELECT b.id, b.claim_no, b.run_no, CASE WHEN b.charged THEN b.attempt + 1 END,
                   coalesce(b.attempt_state, 'released'), b.charged, the_worker, b.executor, b.claimed_at,
                   coalesce(b.started_at, CASE WHEN b.ran_for IS NOT NULL
                       THEN greatest(b.claimed_at, instant - make_interval(secs => b.ran_for)) END),
                   greatest(instant, b.started_at),
                   b.error_class, b.error_message, b.traceback, b.exit_code, b.recorded_by
            FROM before b
            WHERE b.attempt_state IS NOT NULL OR b.started_at IS NOT NULL
            ON CONFLICT (task, claim_no) DO UPDATE
            -- The refused report of a stranger may have made the row before.
            SET attempt = excluded.attempt, state = excluded.state, charged = excluded.charged,
                worker = excluded.worker, claimed_at = excluded.claimed_at,
                executor = coalesce(excluded.executor, a.executor), started_at = excluded.started_at,
                finished_at = excluded.finished_at, error_class = excluded.error_class,
                error_message = excluded.error_message, traceback = excluded.traceback,
                exit_code = excluded.exit_code, recorded_by = excluded.recorded_by
        )
        SELECT array_agg(r.id), array_agg(DISTINCT r.queue) FILTER (WHERE r.ready_at IS NOT NULL),
               array_agg(r.id) FILTER (WHERE r.gates IS NOT NULL),
               array_agg(r.gates) FILTER (WHERE r.gates IS NOT NULL)
        INTO requeued, readied, gated_ids, texts FROM returned r;
        -- Whoever is idle need not find by its next poll what is given back, as by a rescuer.
        PERFORM pg_notify('headrace', q.queue) FROM unnest(readied) AS q(queue);
    END IF;

    WITH input AS (
        SELECT tasks[i] AS task, claim_nos[i] AS claim_no, kinds[i] AS kind, ran_fors[i] AS ran_for, results[i] AS result
        FROM generate_subscripts(tasks, 1) AS i
    ), moved AS (
        DELETE FROM headrace.tasks t USING input s
        WHERE t.id = ANY (ARRAY[s.task]) AND t.claim_no = s.claim_no AND (t.worker = the_worker) IS TRUE
          AND t.state IN ('claimed', 'running', 'paused', 'cancelling')
        RETURNING
            -- What is asked of every row stands first: the rest of it is not unpacked for that.
            t.id, t.job, t.claim_no, t.keyed, s.kind AS k, t.started_at AS written_start, t.gates,
            CASE WHEN states[s.kind] NOT IN ('pending', 'blocked') THEN states[s.kind]
                 WHEN t.state = 'cancelling' THEN 'cancelled' ELSE 'failed' END AS state,
            CASE WHEN states[s.kind] = 'cancelled' OR (t.state = 'cancelling' AND states[s.kind] IN ('pending', 'blocked'))
                 THEN coalesce(t.reason, reasons[s.kind], 'user')
                 WHEN states[s.kind] IN ('pending', 'blocked') THEN 'expired' ELSE reasons[s.kind] END AS reason,
            t.lane, t.priority, t.attempt, t.losses, t.run_no, t.max_attempts, t.critical, t.version,
            t.dead_letter OR dead_letters[s.kind] AS dead_letter,
            t.created_at, t.enqueued_at, t.eligible_at, t.order_at,
            t.name, t.kind, t.queue, t.pool, t.worker, t.arguments, t.codec, t.options, t.order_key, t.max_age,
            t.expires_at, t.claimed_at, t.cancelling_at, t.progress,
            coalesce(t.started_at, CASE WHEN s.ran_for IS NOT NULL
                THEN greatest(t.claimed_at, instant - make_interval(secs => s.ran_for)) END) AS started_at,
            s.result, t.owner
    ), kept AS (
        INSERT INTO headrace.history (
            id, name, kind, queue, pool, lane, priority, state, reason, claim_no, attempt, losses, run_no, max_attempts,
            worker, job, critical, arguments, codec, version, options, gates, order_key, keyed, max_age, created_at,
            enqueued_at, eligible_at, order_at, expires_at, claimed_at, started_at, cancelling_at, progress,
            finished_at, dead_letter, result, result_ref, result_expires_at, error_class, error_message, executor, owner
        )
        SELECT m.id, m.name, m.kind, m.queue, m.pool, m.lane, m.priority, m.state, m.reason, m.claim_no,
               m.attempt + chargeds[m.k]::integer, m.losses, m.run_no, m.max_attempts, m.worker, m.job, m.critical,
               m.arguments, m.codec, m.version, m.options, m.gates, m.order_key, m.keyed, m.max_age, m.created_at,
               m.enqueued_at, m.eligible_at, m.order_at, m.expires_at, m.claimed_at, m.started_at, m.cancelling_at,
               m.progress, greatest(instant, m.started_at), m.dead_letter, m.result, result_refs[m.k],
               instant + make_interval(secs => result_ttls[m.k]),
               coalesce(error_classes[m.k], CASE WHEN m.reason = 'expired' THEN 'headrace.Expired' END),
               coalesce(error_messages[m.k], CASE WHEN m.reason = 'expired' THEN 'its max age passes before it could run again' END),
               executors[m.k], m.owner
        FROM moved m
    ), tried AS (
        INSERT INTO headrace.attempts AS a (
            task, claim_no, run_no, attempt, state, charged, worker, executor, claimed_at, started_at, finished_at,
            error_class, error_message, traceback, exit_code, recorded_by
        )
        SELECT m.id, m.claim_no, m.run_no, CASE WHEN chargeds[m.k] THEN m.attempt + 1 END,
               coalesce(attempts[m.k], CASE WHEN m.state = 'cancelled' THEN 'cancelled' ELSE 'released' END),
               chargeds[m.k], m.worker, executors[m.k], m.claimed_at, m.started_at, greatest(instant, m.started_at),
               error_classes[m.k], error_messages[m.k], tracebacks[m.k], exit_codes[m.k], recorded_bys[m.k]
        FROM moved m
        -- A plain success is told by its history row, which is all of its attempt.
        WHERE m.written_start IS NOT NULL OR attempts[m.k] IS NOT NULL AND NOT (
            m.state = 'completed' AND attempts[m.k] = 'succeeded' AND chargeds[m.k] AND recorded_bys[m.k] = 'worker'
            AND error_classes[m.k] IS NULL
        )
        ON CONFLICT (task, claim_no) DO UPDATE
        SET attempt = excluded.attempt, state = excluded.state, charged = excluded.charged,
            worker = excluded.worker, claimed_at = excluded.claimed_at,
            executor = coalesce(excluded.executor, a.executor), started_at = excluded.started_at,
            finished_at = excluded.finished_at, error_class = excluded.error_class,
            error_message = excluded.error_message, traceback = excluded.traceback,
            exit_code = excluded.exit_code, recorded_by = excluded.recorded_by
    )
    SELECT array_agg(m.id), array_agg(m.id) FILTER (WHERE m.job IS NOT NULL OR m.keyed OR m.gates IS NOT NULL),
           array_agg(m.job) FILTER (WHERE m.job IS NOT NULL),
           count(*) FILTER (WHERE m.state = 'completed'), count(*) FILTER (WHERE m.state = 'failed')
    INTO ended, linked, with_jobs, n_completed, n_failed FROM moved m;

    IF linked IS NOT NULL THEN
        PERFORM headrace.ended_v1(linked);
    END IF;
    IF gated_ids IS NOT NULL THEN
        PERFORM headrace.free_gates_v1(gated_ids, texts);
    END IF;
    IF n_failed > 0 THEN
        PERFORM headrace.publish_failures_v1(ended);
    END IF;
    IF n_completed + n_failed > 0 THEN
        UPDATE headrace.workers w
        SET tasks_completed = w.tasks_completed + n_completed, tasks_failed = w.tasks_failed + n_failed
        WHERE w.id = the_worker;
    END IF;
    IF coalesce(cardinality(requeued), 0) + coalesce(cardinality(ended), 0) < cardinality(tasks) THEN
        RETURN QUERY
        SELECT s.task, s.claim_no, NULL::text, NULL::text, NULL::text, NULL::text, NULL::smallint, NULL::integer,
               NULL::text, NULL::text, NULL::integer, NULL::text, NULL::integer, NULL::integer, NULL::integer,
               NULL::integer, NULL::bigint, false, false, 'refused'::text, NULL::timestamptz, NULL::double precision
        FROM unnest(tasks, claim_nos) AS s(task, claim_no)
        WHERE NOT (s.task = ANY (coalesce(requeued, '{}') || coalesce(ended, '{}')));
    END IF;
    IF with_jobs IS NOT NULL THEN
        -- Written by this very transaction: another one may have ended a job whose tasks are still coming home.
        RETURN QUERY
        SELECT j.id, 0, j.state, NULL::text, NULL::text, NULL::text, NULL::smallint, NULL::integer,
               CASE WHEN j.state = 'completed' THEN j.on_success ELSE j.on_failure END, NULL::text, NULL::integer,
               NULL::text, NULL::integer, NULL::integer, NULL::integer, NULL::integer, NULL::bigint, false, false,
               CASE WHEN j.state NOT IN ('pending', 'running') AND j.xmin = pg_current_xact_id()::xid
                    THEN 'job ended' ELSE 'job counted' END,
               NULL::timestamptz, extract(epoch FROM j.completed_at - j.started_at)::double precision
        FROM headrace.jobs j WHERE j.id = ANY (with_jobs);
    END IF;
    IF linked IS NOT NULL AND EXISTS (SELECT FROM headrace.releases) THEN
        RETURN QUERY
        SELECT 0::bigint, 0, NULL::text, NULL::text, NULL::text, NULL::text, NULL::smallint, NULL::integer,
               NULL::text, NULL::text, NULL::integer, NULL::text, NULL::integer, NULL::integer, NULL::integer,
               NULL::integer, NULL::bigint, false, false, 'releasing'::text, NULL::timestamptz, NULL::double precision;
    END IF;
    IF cardinality(want_queues) > 0 THEN
        RETURN QUERY SELECT * FROM headrace.claim_v1(
            the_worker, want_queues, want_pools, want_lanes, want_counts,
            range_wants, range_highs, range_lows, range_order_ats, range_ids);
    END IF;
END
$function$;
