-- name: standing
SELECT state FROM pairing WHERE channel = ?1 AND account = ?2 AND sender = ?3

-- name: over
DELETE FROM pairing WHERE state = 'pending' AND until <= ?

-- name: pending
SELECT count(*) FROM pairing WHERE channel = ?1 AND account = ?2 AND state = 'pending'

-- name: keep
INSERT INTO pairing (channel, account, sender, state, code, message_id, at, until) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)

-- name: coded
SELECT channel, account, sender FROM pairing WHERE code = ?1 AND until > ?2

-- name: decide
UPDATE pairing SET state = ?4, code = NULL, at = ?5, until = 0 WHERE channel = ?1 AND account = ?2 AND sender = ?3

-- name: asked_by
SELECT message.lane_id, message.sender_name FROM pairing JOIN message ON message.id = pairing.message_id
WHERE pairing.channel = ?1 AND pairing.account = ?2 AND pairing.sender = ?3

-- name: dropped
SELECT DISTINCT batch.id FROM message INDEXED BY message_external
JOIN batch ON batch.lane_id = message.lane_id AND message.number BETWEEN batch.first AND batch.last
WHERE message.lane_id = ?1 AND message.trust = 'external' AND message.sender = ?2 AND message.event = 'stranger'
  AND batch.state = 'dropped'
ORDER BY batch.id LIMIT ?3

-- name: remove
DELETE FROM pairing WHERE channel = ?1 AND account = ?2 AND sender = ?3

-- name: everybody
SELECT pairing.channel, pairing.account, pairing.sender, pairing.state, coalesce(code, ''), at, until,
  coalesce(message.sender_name, ''), coalesce(lane.conversation, '')
FROM pairing LEFT JOIN message ON message.id = pairing.message_id LEFT JOIN lane ON lane.id = message.lane_id
ORDER BY at DESC, pairing.sender LIMIT ?

-- name: recent_times
WITH RECURSIVE back (id, previous_id) AS (
  SELECT message.id, message.previous_id FROM lane JOIN message ON message.id = lane.last_id
  WHERE lane.channel = ?1 AND lane.account = ?2 AND lane.conversation = ?3
  UNION ALL
  SELECT message.id, message.previous_id FROM back JOIN message ON message.id = back.previous_id
  ORDER BY 1 DESC LIMIT ?6
)
SELECT received_at FROM back CROSS JOIN message ON message.id = back.id WHERE sender = ?4 AND event <> ?5
ORDER BY message.id DESC LIMIT ?7
