-- Tasks with keys, one by one in the order of their keys, so that two such calls never wait for each other in a circle.
-- `created` answers the caller; `inserted` is false as well where an earlier try of this call had written the row.
CREATE OR REPLACE FUNCTION headrace.enqueue_keyed_v1(given json, ids bigint[], instant timestamptz, repeated boolean)
RETURNS TABLE (ordinal integer, id bigint, created boolean, inserted boolean)
LANGUAGE plpgsql
SET enable_seqscan = off
AS $function$
#variable_conflict use_column
DECLARE
    item record;
    wanted record;
    holder record;
    mine bigint;
    outcome text;
    patience CONSTANT text := current_setting('lock_timeout');
BEGIN
    -- An open transaction that holds a key is waited for, but not for ever: 55P03 becomes UniqueBusy.
    PERFORM set_config('lock_timeout', '2s', true);
    -- Tasks before keys, the order in which a finish locks them.
    PERFORM FROM headrace.tasks t
    WHERE t.id IN (
        SELECT k.task
        FROM json_array_elements(given) AS x, json_to_recordset(x -> 'keys') AS w(scope text, key text, on_conflict text)
        JOIN headrace.keys k ON k.scope = w.scope AND k.key = w.key
        WHERE w.on_conflict = 'replace'
    )
    ORDER BY t.id FOR UPDATE;
    FOR item IN
        SELECT x AS task, o::integer AS place FROM json_array_elements(given) WITH ORDINALITY AS e(x, o)
        ORDER BY (SELECT min(k ->> 'scope' || ' ' || (k ->> 'key')) FROM json_array_elements(x -> 'keys') AS k), o
    LOOP
        ordinal := item.place;
        mine := ids[item.place];
        outcome := 'new';
        IF repeated AND (EXISTS (SELECT FROM headrace.tasks t WHERE t.id = mine)
                         OR EXISTS (SELECT FROM headrace.history h WHERE h.id = mine)) THEN
            outcome := 'mine';
        END IF;
        FOR wanted IN
            SELECT w.* FROM json_to_recordset(item.task -> 'keys')
                AS w(scope text, key text, ttl double precision, on_conflict text)
            WHERE outcome = 'new' ORDER BY w.scope, w.key
        LOOP
            LOOP
                INSERT INTO headrace.keys (scope, key, task, ttl, expires_at)
                VALUES (wanted.scope, wanted.key, mine, wanted.ttl,
                        CASE WHEN wanted.scope = 'idem' THEN instant + make_interval(secs => wanted.ttl) END)
                ON CONFLICT (scope, key) DO NOTHING;
                EXIT WHEN FOUND;
                UPDATE headrace.keys k
                SET task = mine, ttl = wanted.ttl,
                    expires_at = CASE WHEN wanted.scope = 'idem' THEN instant + make_interval(secs => wanted.ttl) END
                WHERE k.scope = wanted.scope AND k.key = wanted.key AND k.expires_at <= clock_timestamp();
                EXIT WHEN FOUND;
                IF wanted.on_conflict = 'replace' THEN
                    SELECT k.task INTO holder FROM headrace.keys k
                    WHERE k.scope = wanted.scope AND k.key = wanted.key FOR UPDATE;
                ELSE
                    SELECT k.task INTO holder FROM headrace.keys k
                    WHERE k.scope = wanted.scope AND k.key = wanted.key;
                END IF;
                -- Freed between the two statements: try to take it again.
                CONTINUE WHEN NOT FOUND;
                EXIT WHEN holder.task = mine;
                IF wanted.on_conflict = 'replace' AND (item.task ->> 'blocked')::boolean THEN
                    -- The holder would get what belongs to edges that it has not.
                    RAISE EXCEPTION 'task % waits for others and cannot replace task %', item.task ->> 'name', holder.task
                        USING ERRCODE = 'HR007', DETAIL = item.task ->> 'name', HINT = holder.task::text;
                END IF;
                IF wanted.on_conflict = 'replace' THEN
                    IF headrace.replace_task_v1(holder.task, item.task, instant) THEN
                        outcome := 'existing';
                    ELSE
                        -- Its holder is being worked on already: what arrives now must run after it. A manual retry
                        -- of the holder will want the key again.
                        INSERT INTO headrace.keys (scope, key, task, ttl, expires_at)
                        SELECT 'ended:' || k.task, k.key, k.task, k.ttl, to_timestamp(0) FROM headrace.keys k
                        WHERE k.scope = wanted.scope AND k.key = wanted.key AND k.scope = 'unique'
                        ON CONFLICT (scope, key) DO NOTHING;
                        UPDATE headrace.keys k
                        SET task = mine, ttl = wanted.ttl,
                            expires_at = CASE WHEN wanted.scope = 'idem'
                                              THEN instant + make_interval(secs => wanted.ttl) END
                        WHERE k.scope = wanted.scope AND k.key = wanted.key;
                    END IF;
                ELSIF wanted.on_conflict = 'reject' AND NOT holder.task = ANY (ids) THEN
                    RAISE EXCEPTION 'key % is held by task %', wanted.key, holder.task
                        USING ERRCODE = 'HR001', DETAIL = wanted.key, HINT = holder.task::text;
                ELSE
                    outcome := 'existing';
                END IF;
                EXIT;
            END LOOP;
            EXIT WHEN outcome = 'existing';
        END LOOP;
        IF outcome = 'existing' THEN
            DELETE FROM headrace.keys k WHERE k.task = mine;
            id := holder.task;
            created := false;
            inserted := false;
        ELSE
            PERFORM headrace.insert_tasks_v1(json_build_array(item.task), ARRAY[mine], instant, repeated);
            inserted := FOUND;
            id := mine;
            created := true;
        END IF;
        RETURN NEXT;
    END LOOP;
    PERFORM set_config('lock_timeout', patience, true);
END
$function$;
