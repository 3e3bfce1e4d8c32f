-- name: kept
DELETE FROM episode_due WHERE batch_id = ?

-- name: keep_marks
INSERT INTO redaction (message_id, marks) SELECT ?1, ?2 WHERE EXISTS (SELECT 1 FROM message WHERE id = ?1)
ON CONFLICT (message_id) DO UPDATE SET marks = excluded.marks

-- name: marks
SELECT marks FROM redaction WHERE message_id = ?
