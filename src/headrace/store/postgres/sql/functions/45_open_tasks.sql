-- Opens a new run of ended tasks; returns those it changed. Two at once: the second finds the rows gone from history.
-- A task stays where it is whose unique key another task holds at this moment, and one that can never run: what it waits
-- for has ended the other way, and is not opened with it.
-- `anew` forgets what earlier runs have stored, and asks for approvals again.
-- Whoever was free to run because one of these had ended waits for it again, unless it is in a worker's hands.
-- Locks: live tasks, history, barriers, job counters, keys; then the tasks that wait again, as one that frees them does.
CREATE OR REPLACE FUNCTION headrace.open_tasks_v1(ids bigint[], anew boolean)
RETURNS bigint[]
LANGUAGE plpgsql
SET enable_seqscan = off
AS $function$
DECLARE
    instant CONSTANT timestamptz := clock_timestamp();
    chosen bigint[];
    taken bigint[] := '{}';
    candidate record;
    name record;
    patience CONSTANT text := current_setting('lock_timeout');
    opened bigint[];
    linked bigint[];
    counted record;
BEGIN
    PERFORM headrace.hold_upstreams_v1(ARRAY(SELECT DISTINCT d.upstream FROM headrace.dependencies d WHERE d.task = ANY (ids)));
    chosen := ARRAY(
        SELECT h.id FROM headrace.history h
        WHERE h.id = ANY (ids) AND (h.state IN ('failed', 'cancelled', 'completed') OR anew) IS TRUE ORDER BY h.id FOR UPDATE);
    PERFORM FROM headrace.releases r WHERE r.upstream = ANY (chosen) ORDER BY r.upstream FOR UPDATE;
    PERFORM FROM headrace.barriers b
    WHERE b.task = ANY (chosen || ARRAY(SELECT d.task FROM headrace.dependencies d WHERE d.upstream = ANY (chosen)))
    ORDER BY b.task FOR UPDATE;
    PERFORM FROM headrace.job_counts c
    WHERE c.job IN (SELECT h.job FROM headrace.history h WHERE h.id = ANY (chosen)) ORDER BY c.job FOR UPDATE;
    chosen := headrace.possible_v1(chosen);
    -- A key that an open transaction holds is not free either; it is waited for as long as an enqueue would.
    PERFORM set_config('lock_timeout', '2s', true);
    FOR candidate IN
        SELECT h.id, 'ended:' || h.id AS names FROM headrace.history h WHERE h.id = ANY (chosen) AND h.keyed
        ORDER BY (SELECT min(k.key) FROM headrace.keys k WHERE k.scope = 'ended:' || h.id), h.id
    LOOP
        BEGIN
            FOR name IN SELECT k.key, k.ttl FROM headrace.keys k WHERE k.scope = candidate.names ORDER BY k.key LOOP
                INSERT INTO headrace.keys AS k (scope, key, task, ttl) VALUES ('unique', name.key, candidate.id, name.ttl)
                ON CONFLICT (scope, key) DO UPDATE SET task = excluded.task, ttl = excluded.ttl, expires_at = NULL
                WHERE k.task = excluded.task OR k.expires_at <= clock_timestamp();
                IF NOT FOUND THEN
                    RAISE EXCEPTION 'key % is held', name.key USING ERRCODE = 'HR004';
                END IF;
            END LOOP;
            DELETE FROM headrace.keys k WHERE k.scope = candidate.names;
            taken := taken || candidate.id;
        EXCEPTION
            -- What this task had taken so far is undone.
            WHEN SQLSTATE 'HR004' OR lock_not_available THEN NULL;
        END;
    END LOOP;
    PERFORM set_config('lock_timeout', patience, true);
    IF EXISTS (SELECT FROM headrace.history h WHERE h.id = ANY (chosen) AND h.keyed AND NOT h.id = ANY (taken)) THEN
        opened := headrace.possible_v1(ARRAY(
            SELECT h.id FROM headrace.history h WHERE h.id = ANY (chosen) AND (NOT h.keyed OR h.id = ANY (taken))));
        -- Those that cannot run without one of these have taken their keys for nothing.
        PERFORM headrace.free_v1(ARRAY(SELECT unnest(taken) EXCEPT SELECT unnest(opened)));
        chosen := opened;
    END IF;
    FOR counted IN
        SELECT h.job, count(*) FILTER (WHERE h.state = 'completed') AS completed,
               count(*) FILTER (WHERE h.state = 'failed') AS failed,
               count(*) FILTER (WHERE h.state IN ('cancelled', 'rejected')) AS cancelled
        FROM headrace.history h WHERE h.id = ANY (chosen) AND h.job IS NOT NULL GROUP BY h.job ORDER BY h.job
    LOOP
        UPDATE headrace.job_counts c
        SET completed = c.completed - counted.completed, failed = c.failed - counted.failed,
            cancelled = c.cancelled - counted.cancelled, seq = c.seq + 1
        WHERE c.job = counted.job;
        UPDATE headrace.jobs j
        SET state = 'pending', reason = NULL, run_no = j.run_no + 1, started_at = NULL, completed_at = NULL,
            deadline_at = instant + make_interval(secs => j.timeout)
        WHERE j.id = counted.job AND j.state NOT IN ('pending', 'running');
        PERFORM headrace.note_job_v1(ARRAY[counted.job]);
        PERFORM pg_notify('headrace_live', 'job/' || counted.job);
    END LOOP;
    UPDATE headrace.tasks t
    SET state = 'blocked', ready_at = NULL, waiting_on = CASE t.state WHEN 'pending_approval' THEN 'approval' END
    WHERE t.id = ANY (ARRAY(SELECT d.task FROM headrace.dependencies d WHERE d.upstream = ANY (chosen)))
      AND (t.state IN ('pending', 'pending_approval')) IS TRUE AND (t.worker IS NULL) IS TRUE;
    -- Whoever goes on waiting waits for these again, unless their release had not come to it: that will not come now.
    INSERT INTO headrace.barriers AS b (task, remaining)
    SELECT d.task, count(*)::integer
    FROM headrace.dependencies d JOIN headrace.tasks t ON t.id = ANY (ARRAY[d.task]) AND (t.state = 'blocked') IS TRUE
    LEFT JOIN headrace.releases r ON r.upstream = d.upstream
    WHERE d.upstream = ANY (chosen) AND (r.upstream IS NULL OR d.task <= r.after) GROUP BY d.task ORDER BY d.task
    ON CONFLICT (task) DO UPDATE SET remaining = b.remaining + excluded.remaining;
    DELETE FROM headrace.releases r WHERE r.upstream = ANY (chosen);
    WITH gone AS (
        DELETE FROM headrace.history h WHERE h.id = ANY (chosen) RETURNING h.*
    ), shape AS MATERIALIZED (
        SELECT g.id, EXISTS (SELECT FROM headrace.dependencies d WHERE d.task = g.id) AS blocked,
               EXISTS (SELECT FROM headrace.waits w WHERE w.task = g.id AND w.step = 'approval' AND NOT w.over)
               OR anew AND (g.state = 'rejected' OR EXISTS (
                   SELECT FROM headrace.checkpoints c WHERE c.task = g.id AND c.name = 'approval')) AS approval
        FROM gone g
    ), born AS (
        INSERT INTO headrace.tasks AS t (
            id, name, kind, queue, pool, lane, priority, state, claim_no, attempt, losses, run_no, max_attempts, job,
            critical, dead_letter, arguments, codec, version, options, gates, order_key, keyed, max_age, created_at, enqueued_at,
            eligible_at, order_at, expires_at, ready_at, waiting_on, owner
        )
        SELECT g.id, g.name, g.kind, g.queue, g.pool, 1, g.priority,
               CASE WHEN s.blocked THEN 'blocked' WHEN s.approval THEN 'pending_approval' ELSE 'pending' END,
               g.claim_no, 0, 0, g.run_no + 1,
               g.max_attempts, g.job, g.critical, g.dead_letter, g.arguments, g.codec, g.version, g.options, g.gates,
               g.order_key, g.keyed, g.max_age, g.created_at, instant, instant, CASE WHEN g.job IS NULL THEN instant ELSE g.order_at END,
               instant + make_interval(secs => g.max_age),
               CASE WHEN NOT s.blocked AND NOT s.approval THEN instant END,
               CASE WHEN s.blocked AND s.approval THEN 'approval' END, g.owner
        FROM gone g JOIN shape s ON s.id = g.id
        RETURNING t.id, t.queue, t.state
    ), tried AS (
        -- A plain success was told by the row that leaves history.
        INSERT INTO headrace.attempts AS a (
            task, claim_no, run_no, attempt, state, charged, worker, executor, claimed_at, started_at, finished_at,
            recorded_by
        )
        SELECT g.id, g.claim_no, g.run_no, g.attempt, 'succeeded', true, g.worker, g.executor, g.claimed_at,
               g.started_at, g.finished_at, 'worker'
        FROM gone g WHERE g.state = 'completed'
        ON CONFLICT (task, claim_no) DO UPDATE
        SET run_no = excluded.run_no, attempt = excluded.attempt, state = excluded.state, charged = excluded.charged,
            worker = excluded.worker, executor = excluded.executor, claimed_at = excluded.claimed_at,
            started_at = excluded.started_at, finished_at = excluded.finished_at, recorded_by = excluded.recorded_by
        WHERE a.state = 'refused'
    ), told AS (
        SELECT count(pg_notify('headrace', q.queue)) AS n
        FROM (SELECT DISTINCT b.queue FROM born b WHERE b.state = 'pending') AS q
    )
    SELECT array_agg(b.id ORDER BY b.id), array_agg(b.id) FILTER (WHERE b.state = 'blocked')
    INTO opened, linked FROM born b, told;
    DELETE FROM headrace.waits w WHERE w.task = ANY (opened) AND w.step = 'approval' AND NOT w.over;
    IF linked IS NOT NULL THEN
        PERFORM headrace.free_tasks_v1(headrace.count_barriers_v1(linked));
    END IF;
    RETURN coalesce(opened, '{}');
END
$function$;
