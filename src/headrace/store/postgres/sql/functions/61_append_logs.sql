-- Keeps log lines; one that was written before is not written again. Those of a job's tasks are numbered in their job,
-- without gaps, in the order of the call: the lock on the job's row in job_lines makes the writers of one job take turns.
-- Values of a stream are data of their task and no lines of its job.
-- Returns the jobs that have grown. A loss of power may lose the last of them, until a later commit is durable: a finish
-- takes everything along that was written before it.
CREATE OR REPLACE FUNCTION headrace.append_logs_v1(
    tasks bigint[], claim_nos integer[], seqs integer[], streams text[], lines text[]
)
RETURNS bigint[]
LANGUAGE plpgsql
SET enable_seqscan = off
AS $function$
#variable_conflict use_column
DECLARE
    owned_ids bigint[];
    owners bigint[];
    grown bigint[];
BEGIN
    PERFORM set_config('synchronous_commit', 'off', true);
    SELECT array_agg(o.id), array_agg(o.job) INTO owned_ids, owners FROM (
        SELECT t.id, t.job FROM headrace.tasks t WHERE t.id = ANY (tasks) AND t.job IS NOT NULL
        UNION
        SELECT h.id, h.job FROM headrace.history h WHERE h.id = ANY (tasks) AND h.job IS NOT NULL
    ) AS o;
    IF owned_ids IS NULL THEN
        INSERT INTO headrace.logs (task, claim_no, seq, at, stream, line)
        SELECT s.task, s.claim_no, s.seq, clock_timestamp(), s.stream, s.line
        FROM unnest(tasks, claim_nos, seqs, streams, lines) AS s(task, claim_no, seq, stream, line)
        -- In one order, so that two writers of the same lines wait for each other and not both.
        ORDER BY s.task, s.claim_no, s.seq
        ON CONFLICT (task, claim_no, seq) DO NOTHING;
        RETURN '{}';
    END IF;
    INSERT INTO headrace.job_lines (job, next) SELECT DISTINCT o.job, 0 FROM unnest(owners) AS o(job) ORDER BY o.job
    ON CONFLICT (job) DO NOTHING;
    PERFORM FROM headrace.job_lines n WHERE n.job = ANY (owners) ORDER BY n.job FOR UPDATE;
    -- From here on an earlier try of this very call is seen, and its lines keep their numbers.
    WITH given AS (
        SELECT DISTINCT ON (s.task, s.claim_no, s.seq) s.*, CASE WHEN s.stream <> 'value' THEN o.job END AS job
        FROM unnest(tasks, claim_nos, seqs, streams, lines) WITH ORDINALITY AS s(task, claim_no, seq, stream, line, place)
        LEFT JOIN unnest(owned_ids, owners) AS o(id, job) ON o.id = s.task
        ORDER BY s.task, s.claim_no, s.seq, s.place
    ), fresh AS MATERIALIZED (
        SELECT g.*, row_number() OVER (PARTITION BY g.job ORDER BY g.place) - 1 AS further FROM given g
        WHERE NOT EXISTS (
            SELECT FROM headrace.logs l WHERE l.task = g.task AND l.claim_no = g.claim_no AND l.seq = g.seq)
    ), written AS (
        INSERT INTO headrace.logs (task, claim_no, seq, at, stream, line, job, job_seq)
        SELECT f.task, f.claim_no, f.seq, clock_timestamp(), f.stream, f.line, f.job, n.next + f.further
        FROM fresh f LEFT JOIN headrace.job_lines n ON n.job = f.job
        ORDER BY f.place
        -- Of a task without a job, whose writers take no turns.
        ON CONFLICT (task, claim_no, seq) DO NOTHING
    ), raised AS (
        UPDATE headrace.job_lines n SET next = n.next + added.n
        FROM (SELECT f.job, count(*) AS n FROM fresh f WHERE f.job IS NOT NULL GROUP BY f.job) AS added
        WHERE n.job = added.job RETURNING n.job
    )
    SELECT array_agg(r.job) INTO grown FROM raised r;
    RETURN coalesce(grown, '{}');
END
$function$;
