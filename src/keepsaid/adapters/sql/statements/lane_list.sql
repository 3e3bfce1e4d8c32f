-- name: lanes
/*part lane_line*/
ORDER BY lane.last_id DESC NULLS LAST LIMIT ?

-- name: line
/*part lane_line*/
WHERE lane.channel = ?1 AND lane.account = ?2 AND lane.conversation = ?3 AND lane.key = ?4

-- name: versions
SELECT version, first, last, text, kind, model, created_at FROM lane_summary WHERE lane_id = ? ORDER BY version DESC
