-- name: episodes_kept
DELETE FROM episode_due WHERE batch_id = ?
