-- name: keep_keys
INSERT INTO message_key (key, content, message_id) VALUES /*rows*/ ON CONFLICT (key) DO NOTHING

-- name: known_key
SELECT content, message_id FROM message_key WHERE key = ?

-- name: place
SELECT lane.channel, lane.account, lane.conversation, lane.key, message.number
FROM message JOIN lane ON lane.id = message.lane_id WHERE message.id = ?

-- name: target_lane
SELECT lane.key FROM message JOIN lane ON lane.id = message.lane_id
WHERE message.provider_id = ?1 AND lane.channel = ?2 AND lane.account = ?3 AND lane.conversation = ?4
UNION ALL
SELECT lane.key FROM reply JOIN lane ON lane.id = reply.lane_id
WHERE reply.provider_id = ?1 AND lane.channel = ?2 AND lane.account = ?3 AND lane.conversation = ?4
LIMIT 1

-- name: extend_lanes
INSERT INTO lane (channel, account, conversation, key, head, priority, oldest_at, newest_at, chars, due_at)
VALUES /*rows*/
ON CONFLICT (channel, account, conversation, key) DO UPDATE SET
  head = head + excluded.head,
  priority = coalesce(min(iif(oldest_at IS NULL, NULL, priority), excluded.priority), excluded.priority),
  chars = chars + excluded.chars,
  due_at = iif(
    head - batched + excluded.head >= ? OR chars + excluded.chars >= ?,
    excluded.newest_at,
    min(
      max(
        coalesce(min(oldest_at, excluded.oldest_at), excluded.oldest_at) + ?,
        coalesce(max(newest_at, excluded.newest_at), excluded.newest_at) + ?
      ),
      coalesce(min(oldest_at, excluded.oldest_at), excluded.oldest_at) + ?
    )
  ),
  oldest_at = coalesce(min(oldest_at, excluded.oldest_at), excluded.oldest_at),
  newest_at = coalesce(max(newest_at, excluded.newest_at), excluded.newest_at)
RETURNING channel, account, conversation, key, id, head

-- name: keep_messages
INSERT INTO message (
  id, lane_id, number, sender, sender_name, direct, trust, external_id, provider_id, reply_to, topic, reply_url,
  event, payload, text, priority, received_at, content_hash
) VALUES /*rows*/
