-- Tells a worker, wherever its process listens, what was handed over to it. A function for its fresh snapshot: the row of
-- a worker that stands by for the first time may be younger than the statement that found it.
CREATE OR REPLACE FUNCTION headrace.tell_v1(the_worker text, words text)
RETURNS void
LANGUAGE plpgsql
AS $function$
BEGIN
    PERFORM pg_notify(s.channel, words) FROM headrace.standbys s WHERE s.worker = the_worker;
END
$function$;
