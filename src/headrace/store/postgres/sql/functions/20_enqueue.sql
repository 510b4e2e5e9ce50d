-- The one way into the ledger: tasks with their keys, job counters and wake-ups, from one JSON text.
--   {"tasks": [...], "ids": [...] or absent, "repeats": number or null, "own": bool, "repeated": bool, "keyed": bool,
--    "jobs": [...], "notify": [...], "created": true where the job is new, and its maker writes it down,
--    "edges": {"tasks": …, "places": …, "upstreams": …, "kinds": …, "inputs": …} or absent: texts of arrays, an entry
--    for each edge; a task is its place in the call from 1 on, and an upstream of the same call is its place below zero}
-- In a transaction of the user's (`own` false) no job row is locked: the addition is a row of its own.
-- HR001: a key is held and the caller wants to be refused. HR002: no such job. HR003: the job is over.
-- HR005: an edge leads to a task that is not of the same job. HR007: a task with edges would replace another.
CREATE OR REPLACE FUNCTION headrace.enqueue_v1(document text)
RETURNS TABLE (ordinal integer, id bigint, created boolean)
LANGUAGE plpgsql
SET enable_seqscan = off
AS $function$
#variable_conflict use_column
DECLARE
    envelope CONSTANT json := document::json;
    given CONSTANT json := envelope -> 'tasks';
    own CONSTANT boolean := coalesce((envelope ->> 'own')::boolean, false);
    repeated CONSTANT boolean := coalesce((envelope ->> 'repeated')::boolean, false);
    instant CONSTANT timestamptz := clock_timestamp();
    ids bigint[];
    jobs bigint[];
    born bigint[] := '{}';
    inserted boolean;
    done_before boolean := false;
    found_job record;
    edges CONSTANT json := envelope -> 'edges';
    answered bigint[];
    grown bigint[];
BEGIN
    IF envelope -> 'ids' IS NOT NULL THEN
        ids := ARRAY(SELECT x::bigint FROM json_array_elements_text(envelope -> 'ids') WITH ORDINALITY AS i(x, o) ORDER BY o);
    ELSE
        -- A block of the sequence is a hundred ids (schema.ID_BLOCK).
        ids := ARRAY(
            SELECT b.first + o
            FROM (SELECT nextval('headrace.ids') AS first
                  FROM generate_series(1, (json_array_length(given) + 99) / 100)) AS b,
                 generate_series(0, 99) AS o
            LIMIT json_array_length(given)
        );
    END IF;
    IF repeated THEN
        PERFORM nextval('headrace.repeats');  -- before anything is written: see inserted_v1
        -- The earlier try may be committing at this very moment. To write the same ids means to wait for it; what comes
        -- of that is undone, because by the time it is known its tasks may have run and left the table again. An error
        -- in here comes again below, where it counts.
        BEGIN
            PERFORM headrace.insert_tasks_v1(given, ids, instant, false);
            RAISE EXCEPTION 'undone';
        EXCEPTION WHEN OTHERS THEN
            NULL;
        END;
    END IF;
    IF edges IS NOT NULL THEN
        -- Before the counters: whoever ends one of these holds it while it waits for the counters.
        PERFORM headrace.hold_upstreams_v1((edges ->> 'upstreams')::bigint[]);
    END IF;
    jobs := ARRAY(SELECT x::bigint FROM json_array_elements_text(envelope -> 'jobs') AS x ORDER BY 1);
    IF cardinality(jobs) > 0 THEN
        IF own THEN
            -- Whoever ends a job holds this row too, so the state read next is the one we add to.
            PERFORM FROM headrace.job_counts c WHERE c.job = ANY (jobs) ORDER BY c.job FOR UPDATE;
        END IF;
        IF repeated THEN
            done_before := EXISTS (SELECT FROM headrace.tasks t WHERE t.id = ANY (ids))
                OR EXISTS (SELECT FROM headrace.history h WHERE h.id = ANY (ids));
        END IF;
        FOR found_job IN
            SELECT wanted.id, j.state FROM unnest(jobs) AS wanted(id) LEFT JOIN headrace.jobs j ON j.id = wanted.id
            WHERE NOT done_before
        LOOP
            IF found_job.state IS NULL THEN
                RAISE EXCEPTION 'no job %', found_job.id USING ERRCODE = 'HR002', DETAIL = found_job.id::text;
            ELSIF found_job.state NOT IN ('pending', 'running') THEN
                RAISE EXCEPTION 'job % is %', found_job.id, found_job.state
                    USING ERRCODE = 'HR003', DETAIL = found_job.id::text, HINT = found_job.state;
            END IF;
        END LOOP;
    END IF;
    IF coalesce((envelope ->> 'keyed')::boolean, false) THEN
        FOR ordinal, id, created, inserted IN SELECT * FROM headrace.enqueue_keyed_v1(given, ids, instant, repeated) LOOP
            IF inserted THEN
                born := born || id;
            END IF;
            answered[ordinal] := id;
            RETURN NEXT;
        END LOOP;
    ELSE
        born := ARRAY(SELECT headrace.insert_tasks_v1(given, ids, instant, repeated));
        RETURN QUERY SELECT o, ids[o], true FROM generate_subscripts(ids, 1) AS o;
    END IF;
    -- Ids that come with the call may have been written by another try of it: see inserted_v1. A repeat tries again, and
    -- finds what ended.
    IF envelope -> 'ids' IS NOT NULL
        AND (repeated OR pg_sequence_last_value('headrace.repeats'::regclass)
                             IS DISTINCT FROM (envelope ->> 'repeats')::bigint)
        AND headrace.any_ended_v1(born)
    THEN
        RAISE EXCEPTION 'a task of this call has ended: another try of it was overtaken'
            USING ERRCODE = CASE WHEN repeated THEN '40001' ELSE '23505' END;
    END IF;
    IF cardinality(jobs) > 0 THEN
        -- Only what this very call inserted: an earlier try, whose answer was lost, may have been committed meanwhile.
        IF own THEN
            IF coalesce((envelope ->> 'created')::boolean, false) THEN
                UPDATE headrace.job_counts AS c SET total = c.total + cardinality(born) WHERE c.job = ANY (jobs);
            ELSE
                WITH added AS (
                    UPDATE headrace.job_counts AS c SET total = c.total + new.n, seq = c.seq + 1
                    FROM (SELECT t.job, count(*) AS n FROM headrace.tasks t WHERE t.id = ANY (born) GROUP BY t.job) AS new
                    WHERE c.job = new.job RETURNING c.job
                )
                SELECT array_agg(a.job) INTO grown FROM added a;
                PERFORM headrace.note_job_v1(grown);
            END IF;
        ELSE
            INSERT INTO headrace.job_additions (id, job, n)
            SELECT nextval('headrace.ids'), t.job, count(*)
            FROM headrace.tasks t WHERE t.id = ANY (born) AND t.job IS NOT NULL GROUP BY t.job;
        END IF;
    END IF;
    IF edges IS NOT NULL AND born <> '{}' THEN
        PERFORM headrace.link_tasks_v1(edges, coalesce(answered, ids), born);
    END IF;
    PERFORM pg_notify('headrace', queue) FROM json_array_elements_text(envelope -> 'notify') AS queue;
END
$function$;
