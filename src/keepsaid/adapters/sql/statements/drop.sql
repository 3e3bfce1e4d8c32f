-- name: waiting
SELECT state, lane_id, last - first + 1 FROM batch
WHERE id = ?1 AND (state = 'queued' OR (?2 = 1 AND state = 'leased')) AND steered IS NULL

-- name: drop
UPDATE batch SET state = ?2, action = 'drop', reason = ?3, later = 0, ended_at = ?4, owner = NULL, lease_until = NULL, alone = 0
WHERE id = ?1
