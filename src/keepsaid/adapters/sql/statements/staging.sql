-- name: stage
INSERT INTO staged_memory (turn_id, n, deed) VALUES (?, ?, ?) ON CONFLICT DO NOTHING

-- name: staged
SELECT deed FROM staged_memory WHERE turn_id = ? ORDER BY n

-- name: forget_staged
DELETE FROM staged_memory WHERE turn_id = ?

-- name: done
DELETE FROM staged_memory WHERE turn_id = (SELECT turn_id FROM episode_due WHERE batch_id = ?)
