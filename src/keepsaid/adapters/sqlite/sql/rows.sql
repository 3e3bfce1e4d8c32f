-- name: range
SELECT message.id, lane.channel, lane.account, lane.conversation, lane.key, number, sender, sender_name, direct, trust,
  external_id, provider_id, reply_to, topic, reply_url, event, payload, text, message.priority, received_at
FROM message JOIN lane ON lane.id = message.lane_id
WHERE message.lane_id = ?1 AND number BETWEEN ?2 AND ?3 ORDER BY number

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
