-- The ids of ended tasks of one owner that finished before a cursor, the last finished first, by the owner's index: what
-- others did costs nothing. By ANY and in the order for the reason that list_ended_v1 gives.
CREATE OR REPLACE FUNCTION headrace.list_owned_v1(
    of_owner text, of_states text[], of_queues text[], of_names text[], of_worker text, is_dead boolean,
    before_at timestamptz, before_id bigint, most integer
)
RETURNS SETOF bigint
LANGUAGE plpgsql
STABLE
SET enable_seqscan = off
SET enable_bitmapscan = off
SET enable_sort = off
SET jit = off
SET plan_cache_mode = force_custom_plan
AS $function$
BEGIN
    RETURN QUERY
    SELECT h.id FROM headrace.history h
    WHERE h.owner = ANY (ARRAY[of_owner]) AND h.owner IS NOT NULL
      AND (h.finished_at, h.id) < (coalesce(before_at, 'infinity'), coalesce(before_id, 9223372036854775807))
      AND (cardinality(of_states) = 0 OR h.state = ANY (of_states))
      AND (cardinality(of_queues) = 0 OR h.queue = ANY (of_queues))
      AND (cardinality(of_names) = 0 OR h.name = ANY (of_names))
      AND (of_worker IS NULL OR h.worker = of_worker)
      AND (is_dead IS NULL OR (h.dead_letter AND h.state = 'failed') = is_dead)
    ORDER BY h.owner DESC, h.finished_at DESC, h.id DESC LIMIT most;
END
$function$;
