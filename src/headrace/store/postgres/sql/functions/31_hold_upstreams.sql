-- Holds whatever these tasks wait for: the live upstreams, and the releases of those that ended.
CREATE OR REPLACE FUNCTION headrace.hold_upstreams_v1(upstreams bigint[])
RETURNS void
LANGUAGE plpgsql
SET enable_seqscan = off
AS $function$
BEGIN
    PERFORM FROM headrace.tasks t WHERE t.id = ANY (upstreams) ORDER BY t.id FOR KEY SHARE;
    PERFORM FROM headrace.releases r WHERE r.upstream = ANY (upstreams) ORDER BY r.upstream FOR SHARE;
END
$function$;
