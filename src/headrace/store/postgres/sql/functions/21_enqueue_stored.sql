-- Enqueues a task in its stored form, which is that of store.hooks; gates go into the row as core.limits writes them.
CREATE OR REPLACE FUNCTION headrace.enqueue_stored_v1(stored jsonb, own boolean)
RETURNS void
LANGUAGE plpgsql
SET enable_seqscan = off
AS $function$
DECLARE
    keyed CONSTANT boolean := jsonb_array_length(stored -> 'keys') > 0;
BEGIN
    PERFORM headrace.enqueue_v1(jsonb_build_object(
        'own', own, 'notify', jsonb_build_array(stored ->> 'queue'), 'keyed', keyed,
        'tasks', jsonb_build_array(stored || jsonb_build_object(
            'job', NULL, 'keyed', keyed,
            -- There is nobody to be refused: a key that is held must not keep a job from ending.
            'keys', (SELECT coalesce(jsonb_agg(CASE WHEN k ->> 'on_conflict' = 'reject'
                                                    THEN k || '{"on_conflict": "return"}' ELSE k END), '[]')
                     FROM jsonb_array_elements(stored -> 'keys') AS k),
            'order_key', (SELECT g -> 'key' FROM jsonb_array_elements(stored -> 'gates') AS g WHERE g ->> 'kind' = 'order'),
            'gates', (SELECT jsonb_agg(jsonb_build_array(g -> 'kind', g -> 'key', g -> 'n', g -> 'per', g -> 'burst'))::text
                      FROM jsonb_array_elements(stored -> 'gates') AS g)
        ))
    )::text);
END
$function$;
