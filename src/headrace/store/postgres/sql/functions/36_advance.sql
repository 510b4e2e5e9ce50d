-- What the end of tasks (they are in history by now) means for those that wait for them, as core.advance says: what can
-- never run is cancelled, all the way down; what has nothing left to wait for is freed. One that has begun, and waits
-- again for what ran again, waits for its end whatever that is. Returns what it cancelled.
-- Everything is looked up by the ids that ended, however large their jobs are: one by one, because a plan that was made
-- while history was empty would rather read all of it. Where more wait for one task than a
-- transaction should free (store.base.RELEASED_AT_ONCE), a row of `releases` says how far `release` has come.
CREATE OR REPLACE FUNCTION headrace.advance_v1(ids bigint[])
RETURNS bigint[]
LANGUAGE plpgsql
SET enable_seqscan = off
SET enable_bitmapscan = off
SET enable_hashjoin = off
SET enable_mergejoin = off
SET plan_cache_mode = force_generic_plan
AS $function$
DECLARE
    frontier bigint[] := ids;
    heads bigint[];
    wide bigint[];
    here bigint[];
    lowered bigint[] := '{}';
    lost bigint[];
    skips boolean[];
    more_lost bigint[];
    more_skips boolean[];
    gone bigint[] := '{}';
BEGIN
    LOOP
        heads := ARRAY(
            SELECT x.id FROM unnest(frontier) AS x(id)
            WHERE EXISTS (SELECT FROM headrace.dependencies d WHERE d.upstream = ANY (ARRAY[x.id])));
        EXIT WHEN heads = '{}';
        WITH edges AS MATERIALIZED (
            SELECT h.id AS upstream, d.task, d.kind = 2 AS skips, CASE d.kind
                WHEN 0 THEN h.state = 'completed' WHEN 1 THEN true ELSE h.state IN ('failed', 'rejected') END AS holds
            FROM unnest(heads) AS x(id)
            CROSS JOIN LATERAL (SELECT o.id, o.state FROM headrace.history o WHERE o.id = x.id LIMIT 1) AS h
            CROSS JOIN LATERAL (
                SELECT e.task, e.kind FROM headrace.dependencies e WHERE e.upstream = h.id ORDER BY e.upstream, e.task LIMIT 1001
            ) AS d
        ), many AS MATERIALIZED (
            SELECT e.upstream FROM edges e GROUP BY e.upstream HAVING count(*) > 1000
        )
        SELECT array_agg(e.task) FILTER (WHERE e.holds), array_agg(e.task) FILTER (WHERE NOT e.holds),
               array_agg(e.skips) FILTER (WHERE NOT e.holds), (SELECT array_agg(m.upstream) FROM many m)
        INTO here, lost, skips, wide
        FROM edges e WHERE e.upstream NOT IN (SELECT m.upstream FROM many m);
        lowered := lowered || coalesce(here, '{}');
        IF wide IS NOT NULL THEN
            SELECT array_agg(d.task), array_agg(d.kind = 2) INTO more_lost, more_skips
            FROM unnest(wide) AS x(id)
            CROSS JOIN LATERAL (SELECT o.id, o.state FROM headrace.history o WHERE o.id = x.id LIMIT 1) AS h
            JOIN headrace.dependencies d ON d.upstream = h.id
            WHERE CASE d.kind
                WHEN 0 THEN h.state <> 'completed' WHEN 1 THEN false ELSE h.state NOT IN ('failed', 'rejected') END;
            lost := coalesce(lost, '{}') || coalesce(more_lost, '{}');
            skips := coalesce(skips, '{}') || coalesce(more_skips, '{}');
            INSERT INTO headrace.releases AS r (upstream, state, after)
            SELECT h.id, h.state, 0 FROM unnest(wide) AS x(id)
            CROSS JOIN LATERAL (SELECT o.id, o.state FROM headrace.history o WHERE o.id = x.id LIMIT 1) AS h
            WHERE EXISTS (
                SELECT FROM headrace.dependencies d WHERE d.upstream = h.id AND CASE d.kind
                    WHEN 0 THEN h.state = 'completed' WHEN 1 THEN true ELSE h.state IN ('failed', 'rejected') END
            )
            ORDER BY h.id
            ON CONFLICT (upstream) DO UPDATE SET state = excluded.state, after = 0;
        END IF;
        EXIT WHEN coalesce(cardinality(lost), 0) = 0;
        frontier := headrace.doom_v1(lost, skips);
        lowered := lowered || ARRAY(
            SELECT l.task FROM unnest(lost) AS l(task) JOIN headrace.tasks t ON t.id = ANY (ARRAY[l.task])
            WHERE (t.state = 'blocked') IS TRUE AND headrace.begun_v1(t.id, t.enqueued_at));
        EXIT WHEN frontier = '{}';
        gone := gone || frontier;
    END LOOP;
    IF lowered <> '{}' THEN
        PERFORM headrace.lower_barriers_v1(lowered);
    END IF;
    RETURN gone;
END
$function$;
