-- Workers that hold tasks and are stopped or unknown: whoever is between two that live, in the order of their ids, one
-- probe of the index each. What those that live hold is not looked at, nor what they held before: an old snapshot may
-- keep it in the index (340 ms a look after 100 s).
CREATE OR REPLACE FUNCTION headrace.stopped_holders_v1(most integer)
RETURNS SETOF text
LANGUAGE plpgsql
STABLE
SET enable_seqscan = off
SET enable_bitmapscan = off
SET plan_cache_mode = force_generic_plan
SET jit = off
AS $function$
DECLARE
    below text;
    above text;
    here text;
    found_so_far integer := 0;
BEGIN
    FOR below, above IN
        SELECT living.id, lead(living.id) OVER (ORDER BY living.id) FROM (
            SELECT '' AS id UNION ALL SELECT w.id FROM headrace.workers w WHERE w.state <> 'stopped'
        ) AS living
        ORDER BY living.id
    LOOP
        here := below;
        LOOP
            IF above IS NULL THEN
                SELECT t.worker INTO here FROM headrace.tasks t WHERE t.worker > here ORDER BY t.worker LIMIT 1;
            ELSE
                SELECT t.worker INTO here FROM headrace.tasks t
                WHERE t.worker > here AND t.worker < above ORDER BY t.worker LIMIT 1;
            END IF;
            EXIT WHEN here IS NULL;
            RETURN NEXT here;
            found_so_far := found_so_far + 1;
            IF found_so_far >= most THEN
                RETURN;
            END IF;
        END LOOP;
    END LOOP;
END
$function$;
