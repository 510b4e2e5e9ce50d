-- The one way into the ledger: tasks with their keys, job counters and wake-ups, from one JSON text.
--   {"tasks": [...], "ids": [...] or absent, "own": bool, "repeated": bool, "keyed": bool, "jobs": [...], "notify": [...]}
-- In a transaction of the user's (`own` false) no job row is locked: the addition is a row of its own.
-- HR001: a key is held and the caller wants to be refused. HR002: no such job. HR003: the job is over.
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
    made integer[];
    done_before boolean := false;
    found_job record;
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
        done_before := EXISTS (SELECT FROM headrace.tasks t WHERE t.id = ANY (ids))
            OR EXISTS (SELECT FROM headrace.history h WHERE h.id = ANY (ids));
    END IF;
    jobs := ARRAY(SELECT x::bigint FROM json_array_elements_text(envelope -> 'jobs') AS x ORDER BY 1);
    IF cardinality(jobs) > 0 AND NOT done_before THEN
        IF own THEN
            -- Whoever ends a job holds this row too, so the state read next is the one we add to.
            PERFORM FROM headrace.job_counts c WHERE c.job = ANY (jobs) ORDER BY c.job FOR UPDATE;
        END IF;
        FOR found_job IN
            SELECT wanted.id, j.state FROM unnest(jobs) AS wanted(id) LEFT JOIN headrace.jobs j ON j.id = wanted.id
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
        FOR ordinal, id, created IN SELECT * FROM headrace.enqueue_keyed_v1(given, ids, instant, repeated) LOOP
            IF created THEN
                made := made || ordinal;
            END IF;
            RETURN NEXT;
        END LOOP;
    ELSE
        PERFORM headrace.insert_tasks_v1(given, ids, instant, repeated);
        made := ARRAY(SELECT generate_subscripts(ids, 1));
        RETURN QUERY SELECT o, ids[o], true FROM unnest(made) AS o;
    END IF;
    IF cardinality(jobs) > 0 AND NOT done_before THEN
        IF own THEN
            UPDATE headrace.job_counts AS c SET total = c.total + new.n
            FROM (SELECT (t.x ->> 'job')::bigint AS job, count(*) AS n
                  FROM json_array_elements(given) WITH ORDINALITY AS t(x, o)
                  WHERE t.o = ANY (made) AND t.x ->> 'job' IS NOT NULL GROUP BY 1) AS new
            WHERE c.job = new.job;
        ELSE
            INSERT INTO headrace.job_additions (id, job, n)
            SELECT nextval('headrace.ids'), (t.x ->> 'job')::bigint, count(*)
            FROM json_array_elements(given) WITH ORDINALITY AS t(x, o)
            WHERE t.o = ANY (made) AND t.x ->> 'job' IS NOT NULL GROUP BY 2;
        END IF;
    END IF;
    PERFORM pg_notify('headrace', queue) FROM json_array_elements_text(envelope -> 'notify') AS queue;
END
$function$;
