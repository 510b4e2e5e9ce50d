-- Moves tasks to history that end without a report: those nobody holds, and those that did not answer a cancellation
-- (their claim number rises, so that a late report is refused). Returns what it moved; `ended` must follow.
CREATE OR REPLACE FUNCTION headrace.end_tasks_v1(
    ids bigint[], new_state text, new_reason text, new_error_class text, new_error_message text
)
RETURNS bigint[]
LANGUAGE plpgsql
SET enable_seqscan = off
AS $function$
DECLARE
    moved_ids bigint[];
BEGIN
    WITH clock AS MATERIALIZED (
        SELECT clock_timestamp() AS at
    ), moved AS (
        DELETE FROM headrace.tasks t
        WHERE t.id = ANY (ids) AND (t.worker IS NULL OR t.state = 'cancelling')
        RETURNING t.*
    ), kept AS (
        INSERT INTO headrace.history (
            id, name, kind, queue, pool, lane, priority, state, reason, claim_no, attempt, losses, run_no, max_attempts,
            worker, job, critical, dead_letter, arguments, codec, version, options, gates, order_key, keyed, max_age,
            created_at, enqueued_at, eligible_at, order_at, expires_at, claimed_at, started_at, cancelling_at, progress,
            finished_at, error_class, error_message, owner
        )
        SELECT
            m.id, m.name, m.kind, m.queue, m.pool, m.lane, m.priority, new_state,
            CASE WHEN m.worker IS NULL THEN new_reason ELSE coalesce(m.reason, new_reason) END,
            m.claim_no + (m.worker IS NOT NULL)::integer,
            m.attempt + (m.worker IS NOT NULL AND m.started_at IS NOT NULL)::integer, m.losses, m.run_no, m.max_attempts,
            m.worker, m.job, m.critical, m.dead_letter, m.arguments, m.codec, m.version, m.options, m.gates,
            m.order_key, m.keyed, m.max_age, m.created_at, m.enqueued_at, m.eligible_at, m.order_at, m.expires_at, m.claimed_at,
            m.started_at, m.cancelling_at, m.progress, clock.at, new_error_class, new_error_message, m.owner
        FROM moved m, clock
    ), tried AS (
        -- What was entered is charged, as it would be had its worker answered.
        INSERT INTO headrace.attempts AS a
            (task, claim_no, run_no, attempt, state, charged, worker, claimed_at, started_at, finished_at, recorded_by)
        SELECT m.id, m.claim_no, m.run_no, CASE WHEN m.started_at IS NOT NULL THEN m.attempt + 1 END, 'cancelled',
               m.started_at IS NOT NULL, m.worker, m.claimed_at, m.started_at, clock.at, 'sweeper'
        FROM moved m, clock WHERE m.worker IS NOT NULL
        ON CONFLICT (task, claim_no) DO UPDATE
        SET attempt = excluded.attempt, state = excluded.state, charged = excluded.charged, worker = excluded.worker,
            claimed_at = excluded.claimed_at, started_at = excluded.started_at, finished_at = excluded.finished_at,
            recorded_by = excluded.recorded_by
    ), asked AS (
        -- What nobody has approved yet is not run again without that: see open_tasks_v1.
        INSERT INTO headrace.waits (task, step, event, key)
        SELECT m.id, 'approval', 'approval', '' FROM moved m
        WHERE m.state = 'pending_approval' OR m.waiting_on = 'approval'
        ON CONFLICT (task, step) DO NOTHING
    )
    SELECT array_agg(m.id) INTO moved_ids FROM moved m;
    RETURN coalesce(moved_ids, '{}');
END
$function$;
