-- Whether any of these tasks has ended, as of this moment.
CREATE OR REPLACE FUNCTION headrace.any_ended_v1(ids bigint[])
RETURNS boolean
LANGUAGE plpgsql
SET enable_seqscan = off
AS $function$
BEGIN
    RETURN EXISTS (SELECT FROM headrace.history h WHERE h.id = ANY (ids));
END
$function$;
