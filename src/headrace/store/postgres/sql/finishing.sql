-- name: finish
-- Applies settlements.
SELECT * FROM headrace.finish_v1(
    $1, $2::text::bigint[], $3::text::integer[], $4::text::integer[], $5::text::double precision[], $6::text::text[],
    $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21, $22,
    '{}', '{}', '{}', '{}', '{}', '{}', '{}', '{}', '{}'
);

-- name: finish_and_claim
-- Applies settlements, then claims what is wanted next: each function looks at the ledger when it is called, so what the
-- first one readies the second one finds. Side by side, because claims that pass through the first function's own answer
-- are copied once more (1 to 2 us a task). The parts of a UNION ALL of functions are read one after the other.
SELECT * FROM headrace.finish_v1(
    $1, $2::text::bigint[], $3::text::integer[], $4::text::integer[], $5::text::double precision[], $6::text::text[],
    $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21, $22,
    '{}', '{}', '{}', '{}', '{}', '{}', '{}', '{}', '{}'
)
UNION ALL
SELECT * FROM headrace.claim_v1($1, $23, $24, $25, $26, $27, $28, $29, $30, $31);

-- name: standing
-- What the ledger says about claims whose report the fence did not let through. The attempt of a plain success is its
-- history row, see `attempts`.
SELECT s.task, s.claim_no, h.state AS done, h.worker AS done_by,
       CASE WHEN plain.success THEN 'succeeded' ELSE a.state END AS attempt,
       CASE WHEN plain.success THEN h.worker ELSE a.worker END AS tried_by,
       CASE WHEN plain.success THEN 'worker' ELSE a.recorded_by END AS recorded_by,
       t.id IS NOT NULL AND t.worker IS NULL AS returned
FROM unnest($1::bigint[], $2::integer[]) AS s(task, claim_no)
LEFT JOIN headrace.history h ON h.id = s.task AND h.claim_no = s.claim_no
LEFT JOIN headrace.attempts a ON a.task = s.task AND a.claim_no = s.claim_no
LEFT JOIN headrace.tasks t ON t.id = s.task AND t.claim_no = s.claim_no
CROSS JOIN LATERAL (SELECT h.state = 'completed' AND coalesce(a.state, 'refused') = 'refused' AS success) AS plain;

-- name: record_refused
-- A late report, on the attempt it belongs to or on a row of its own; nothing for a claim that never was. A row of its
-- own says nothing of how the claim ended, so it does not hide the success that history tells.
INSERT INTO headrace.attempts AS a (task, claim_no, run_no, state, worker, recorded_by, late_state, late_at)
SELECT s.task, s.claim_no, coalesce(t.run_no, h.run_no), 'refused', $1, s.recorded_by, s.late_state, clock_timestamp()
FROM unnest($2::bigint[], $3::integer[], $4::text[], $5::text[]) AS s(task, claim_no, late_state, recorded_by)
LEFT JOIN headrace.tasks t ON t.id = s.task
LEFT JOIN headrace.history h ON h.id = s.task
WHERE s.claim_no BETWEEN 1 AND coalesce(t.claim_no, h.claim_no)
ON CONFLICT (task, claim_no) DO UPDATE SET late_state = excluded.late_state, late_at = excluded.late_at;
