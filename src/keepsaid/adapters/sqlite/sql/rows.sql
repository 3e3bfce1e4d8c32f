-- name: range
WITH RECURSIVE walk (id, number, previous_id, first) AS (
  SELECT message.id, message.number, message.previous_id, batch.first
  FROM batch JOIN message ON message.id = batch.last_id WHERE batch.id = ?1
  UNION ALL
  SELECT message.id, message.number, message.previous_id, walk.first
  FROM walk JOIN message ON message.id = walk.previous_id WHERE walk.number > walk.first
)
SELECT message.id, lane.channel, lane.account, lane.conversation, lane.key, message.number, sender, sender_name, direct,
  trust, external_id, provider_id, reply_to, topic, reply_url, event, payload, text, message.priority, received_at,
  content_hash, seal, forgotten_at
FROM walk JOIN message ON message.id = walk.id JOIN lane ON lane.id = message.lane_id ORDER BY message.number

-- name: message
SELECT message.id, lane.channel, lane.account, lane.conversation, lane.key, number, sender, sender_name, direct, trust,
  external_id, provider_id, reply_to, topic, reply_url, event, payload, text, message.priority, received_at,
  content_hash, seal, forgotten_at
FROM message JOIN lane ON lane.id = message.lane_id WHERE message.id = ?

-- name: reply
SELECT reply.id, lane.channel, lane.account, lane.conversation, lane.key, turn_id, state, reply.text, notice, url,
  reply_to, fence, attempts, possible_duplicate, created_at, detail
FROM reply JOIN lane ON lane.id = reply.lane_id WHERE reply.id = ?

-- name: trace
SELECT body FROM trace WHERE turn_id = ?
