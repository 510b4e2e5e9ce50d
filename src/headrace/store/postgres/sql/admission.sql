-- name: gated_claims
-- The gates of claims that this worker still holds unstarted, held still.
SELECT t.id, t.claim_no, t.gates
FROM headrace.tasks t
WHERE t.id = ANY ($2::bigint[]) AND t.worker = $1 AND t.state = 'claimed'
ORDER BY t.id FOR UPDATE;

-- name: queue_settings
-- What was set for these queues at run time, held still: whoever changes it readies those who wait after us.
SELECT q.name, q.settings FROM headrace.queues q WHERE q.name = ANY ($1::text[]) AND q.settings <> '{}'
ORDER BY q.name FOR SHARE;

-- name: set_gates
-- The gates that these tasks have today.
UPDATE headrace.tasks t SET gates = s.gates FROM unnest($1::bigint[], $2::text[]) AS s(task, gates)
WHERE t.id = ANY (ARRAY[s.task]);

-- name: make_gates
-- A row to lock for every gate.
INSERT INTO headrace.gates (key, full_at) SELECT key, clock_timestamp() FROM unnest($1::text[]) AS key ORDER BY key
ON CONFLICT (key) DO NOTHING;

-- name: lock_gates
-- Everybody who passes, parks at or frees these gates goes one after the other.
SELECT g.key, g.tokens, extract(epoch FROM g.updated_at)::double precision AS updated_at,
       extract(epoch FROM clock_timestamp())::double precision AS now
FROM headrace.gates g WHERE g.key = ANY ($1::text[]) ORDER BY g.key FOR UPDATE;

-- name: slots
-- Slots that are taken.
SELECT s.key, s.slot, s.task, s.claim_no FROM headrace.slots s WHERE s.key = ANY ($1::text[]);

-- name: heads
-- The oldest live task of each order key.
SELECT k.key, (SELECT t.id FROM headrace.tasks t WHERE t.order_key = k.key ORDER BY t.created_at, t.id LIMIT 1) AS task
FROM unnest($1::text[]) AS k(key);

-- name: take_slots
-- One row for each slot; the primary key makes a double grant impossible.
INSERT INTO headrace.slots (key, slot, task, claim_no)
SELECT * FROM unnest($1::text[], $2::integer[], $3::bigint[], $4::integer[]);

-- name: write_tokens
-- What is left in the buckets.
UPDATE headrace.gates g
SET tokens = s.tokens, updated_at = to_timestamp(s.updated_at), full_at = to_timestamp(s.updated_at + s.fills_in)
FROM unnest($1::text[], $2::double precision[], $3::double precision[], $4::double precision[])
    AS s(key, tokens, updated_at, fills_in)
WHERE g.key = s.key;

-- name: park
-- Back to pending and out of the ready index, uncharged: until someone frees the gate, or until there is a token.
UPDATE headrace.tasks t
SET state = 'pending', worker = NULL, claimed_at = NULL, ready_at = NULL, waiting_on = s.waiting_on,
    eligible_at = CASE WHEN s.waiting_on IS NULL THEN clock_timestamp() + make_interval(secs => s.wait) ELSE t.eligible_at END
FROM unnest($1::bigint[], $2::text[], $3::double precision[]) AS s(task, waiting_on, wait)
WHERE t.id = ANY (ARRAY[s.task]);
