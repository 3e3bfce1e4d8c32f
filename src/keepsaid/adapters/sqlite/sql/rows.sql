-- name: range
WITH RECURSIVE bucket (n, last) AS (
  SELECT first_id >> 37, last_id >> 37 FROM batch WHERE id = ?1
  UNION ALL SELECT n + 1, last FROM bucket WHERE n < last
)
SELECT message.id, lane.channel, lane.account, lane.conversation, lane.key, number, sender, sender_name, direct, trust,
  external_id, provider_id, reply_to, topic, reply_url, event, payload, text, message.priority, received_at
FROM batch CROSS JOIN bucket
CROSS JOIN message ON message.id >> 37 = bucket.n AND message.lane_id = batch.lane_id
  AND message.number BETWEEN batch.first AND batch.last
JOIN lane ON lane.id = message.lane_id
WHERE batch.id = ?1 ORDER BY number

-- name: message
SELECT message.id, lane.channel, lane.account, lane.conversation, lane.key, number, sender, sender_name, direct, trust,
  external_id, provider_id, reply_to, topic, reply_url, event, payload, text, message.priority, received_at
FROM message JOIN lane ON lane.id = message.lane_id WHERE message.id = ?

-- name: reply
SELECT reply.id, lane.channel, lane.account, lane.conversation, lane.key, turn_id, state, reply.text, notice, url,
  reply_to, fence, attempts, possible_duplicate, created_at
FROM reply JOIN lane ON lane.id = reply.lane_id WHERE reply.id = ?

-- name: trace
SELECT body FROM trace WHERE turn_id = ?
