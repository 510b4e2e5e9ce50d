-- Goes on with the dependents of one ended task that were too many for the transaction that ended it, in the order of
-- their ids; how many edges it looked at. Each of many that do this at once has another task, or none.
CREATE OR REPLACE FUNCTION headrace.release_v1(most integer)
RETURNS integer
LANGUAGE plpgsql
SET enable_seqscan = off
SET enable_bitmapscan = off
AS $function$
DECLARE
    release record;
    last bigint;
    looked integer;
    lowered bigint[];
BEGIN
    LOOP
        SELECT * INTO release FROM headrace.releases r ORDER BY r.upstream LIMIT 1 FOR UPDATE SKIP LOCKED;
        IF NOT FOUND THEN
            RETURN 0;
        END IF;
        SELECT max(e.task), count(*) INTO last, looked FROM (
            SELECT d.task FROM headrace.dependencies d WHERE d.upstream = release.upstream AND d.task > release.after
            ORDER BY d.upstream, d.task LIMIT most
        ) AS e;
        IF looked < most THEN
            DELETE FROM headrace.releases r WHERE r.upstream = release.upstream;
        ELSE
            UPDATE headrace.releases r SET after = last WHERE r.upstream = release.upstream;
        END IF;
        CONTINUE WHEN looked = 0;
        -- To the last edge of the last task, which may have several.
        SELECT array_agg(d.task) INTO lowered FROM headrace.dependencies d
        WHERE d.upstream = release.upstream AND d.task > release.after AND d.task <= last AND CASE d.kind
            WHEN 0 THEN release.state = 'completed' WHEN 1 THEN true ELSE release.state IN ('failed', 'rejected') END;
        PERFORM headrace.lower_barriers_v1(coalesce(lowered, '{}'));
        RETURN looked;
    END LOOP;
END
$function$;
