-- Writes the edges of new tasks, which are in the table as blocked, and what those have to wait for (see enqueue_v1 for
-- the form of the edges). `answered` are the tasks of the call, by place; `born` those that it made. One whose edges are
-- all satisfied already is free at once; one that can never run any more has ended at once.
CREATE OR REPLACE FUNCTION headrace.link_tasks_v1(edges json, answered bigint[], born bigint[])
RETURNS void
LANGUAGE plpgsql
SET enable_seqscan = off
AS $function$
DECLARE
    linked bigint[];
    lost bigint[];
    skips boolean[];
    wrong record;
    ups bigint[];
    gone bigint[];
BEGIN
    ups := ARRAY(
        SELECT DISTINCT CASE WHEN e.upstream < 0 THEN answered[-e.upstream] ELSE e.upstream END
        FROM unnest((edges ->> 'upstreams')::bigint[]) AS e(upstream));
    -- A key may have led to tasks that were not known before.
    PERFORM headrace.hold_upstreams_v1(ups);
    WITH given AS MATERIALIZED (
        SELECT answered[e.task] AS task, e.place,
               CASE WHEN e.upstream < 0 THEN answered[-e.upstream] ELSE e.upstream END AS upstream, e.kind, e.input
        FROM unnest((edges ->> 'tasks')::integer[], (edges ->> 'places')::integer[], (edges ->> 'upstreams')::bigint[],
                    (edges ->> 'kinds')::smallint[], (edges ->> 'inputs')::integer[])
            AS e(task, place, upstream, kind, input)
    ), written AS (
        INSERT INTO headrace.dependencies (task, place, upstream, kind, input)
        SELECT g.task, g.place, g.upstream, g.kind, g.input FROM given g JOIN unnest(born) AS b(id) ON b.id = g.task
        RETURNING task
    )
    SELECT array_agg(DISTINCT w.task) INTO linked FROM written w;
    SELECT d.task, d.upstream INTO wrong
    FROM headrace.dependencies d
    LEFT JOIN headrace.tasks t ON t.id = ANY (ARRAY[d.task])
    LEFT JOIN headrace.tasks live ON live.id = ANY (ARRAY[d.upstream])
    LEFT JOIN headrace.history done ON done.id = ANY (ARRAY[d.upstream])
    WHERE d.task = ANY (linked) AND (t.job IS NULL OR coalesce(live.job, done.job) IS DISTINCT FROM t.job) LIMIT 1;
    IF FOUND THEN
        RAISE EXCEPTION 'task % is not of the same job', wrong.upstream
            USING ERRCODE = 'HR005', DETAIL = wrong.upstream::text;
    END IF;
    SELECT array_agg(d.task), array_agg(d.kind = 2) INTO lost, skips
    FROM headrace.dependencies d JOIN headrace.history h ON h.id = ANY (ARRAY[d.upstream])
    WHERE d.task = ANY (linked) AND CASE d.kind
        WHEN 0 THEN h.state <> 'completed' WHEN 1 THEN false ELSE h.state NOT IN ('failed', 'rejected') END;
    PERFORM headrace.free_tasks_v1(ARRAY(
        SELECT f.task FROM unnest(headrace.count_barriers_v1(linked)) AS f(task) WHERE lost IS NULL OR f.task <> ALL (lost)));
    IF lost IS NOT NULL THEN
        gone := headrace.doom_v1(lost, skips);
        IF gone <> '{}' THEN
            PERFORM headrace.ended_v1(gone);
        END IF;
    END IF;
END
$function$;
