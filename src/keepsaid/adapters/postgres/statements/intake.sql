-- name: lately
WITH RECURSIVE back (id, previous_id, lane_id, n) AS (
  SELECT message.id, message.previous_id, message.lane_id, 1
  FROM lane JOIN message ON message.id = lane.last_id
  WHERE lane.channel = ?1 AND lane.account = ?2 AND lane.conversation = ?3 AND substr(lane.key, 1, 6) <> 'topic:'
  UNION ALL
  SELECT message.id, message.previous_id, message.lane_id, back.n + 1
  FROM back JOIN message ON message.id = back.previous_id WHERE back.n < ?4
)
SELECT message.id, lane.key, sender, sender_name, provider_id, reply_to, substr(text, 1, ?5), received_at
FROM back JOIN message ON message.id = back.id JOIN lane ON lane.id = back.lane_id
ORDER BY message.id DESC LIMIT ?4
