-- Whether a task has begun in its present run, and gave its slot back to wait. What it waited for before that decides
-- no more about its fate: it holds results of its own. (A clear begins the run anew: `since` is its enqueued_at.)
CREATE OR REPLACE FUNCTION headrace.begun_v1(the_task bigint, since timestamptz)
RETURNS boolean
LANGUAGE sql
STABLE
AS $function$
    SELECT EXISTS (
        SELECT FROM headrace.attempts a
        WHERE a.task = the_task AND a.state = 'suspended' AND a.finished_at >= since)
$function$;
