-- name: whole
SELECT /*columns*/ FROM memory WHERE memory.id = :id AND memory.state <> 'forgotten'

-- name: open_audience
INSERT INTO memory_audience (scope, external, bound, laned, channel, account, conversation, lane_key)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8) ON CONFLICT DO NOTHING

-- name: widen
UPDATE memory SET scope = ?1, audience = (
  SELECT id FROM memory_audience
  WHERE scope = ?1 AND external = ?2 AND bound = ?3 AND laned = ?4
  AND channel = ?5 AND account = ?6 AND conversation = ?7 AND lane_key = ?8
)
WHERE id = ?9

-- name: note
INSERT INTO memory_widened (memory_id, before, after, by, reason, at) VALUES (:id, :before, :after, :by, :reason, :at)

-- name: widened
SELECT widened.before, widened.after, widened.by, widened.reason, widened.at
FROM memory CROSS JOIN memory_widened AS widened ON widened.memory_id = memory.id
WHERE memory.id = :id AND memory.state <> 'forgotten' AND /*heard*/
ORDER BY widened.seq
