-- The edges of tasks of a job that this very transaction makes: nothing can have ended.
CREATE OR REPLACE FUNCTION headrace.link_job_v1(
    tasks bigint[], places integer[], upstreams bigint[], kinds smallint[], inputs integer[]
)
RETURNS void
LANGUAGE plpgsql
SET enable_seqscan = off
AS $function$
BEGIN
    INSERT INTO headrace.dependencies (task, place, upstream, kind, input)
    SELECT * FROM unnest(tasks, places, upstreams, kinds, inputs);
    INSERT INTO headrace.barriers AS b (task, remaining)
    SELECT e.task, count(*) FROM unnest(tasks) AS e(task) GROUP BY e.task
    -- Its edges may come in several parts.
    ON CONFLICT (task) DO UPDATE SET remaining = b.remaining + excluded.remaining;
END
$function$;
