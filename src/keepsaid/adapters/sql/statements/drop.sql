-- name: waiting
SELECT state, lane_id, last - first + 1 FROM batch WHERE id = ? AND state = 'queued' AND steered IS NULL

-- name: drop
UPDATE batch SET state = ?2, action = 'drop', reason = ?3, later = 0, ended_at = ?4 WHERE id = ?1
