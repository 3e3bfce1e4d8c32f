-- name: known_keys
SELECT key, content, message_id FROM message_key WHERE key IN (SELECT value FROM carray(?))

-- name: still_there
SELECT content_hash FROM message WHERE id = ? AND key_hash = ?

-- name: unkeyed
SELECT key_hash, id FROM message
WHERE id > (SELECT until FROM message_keyed) AND key_hash IS NOT NULL ORDER BY id

-- name: keyed_until
SELECT until FROM message_keyed

-- name: keep_keys
INSERT INTO message_key (key, content, message_id) VALUES /*rows*/ ON CONFLICT (key) DO NOTHING

-- name: fold_keys
INSERT INTO message_key (key, content, message_id)
SELECT key_hash, content_hash, id FROM message WHERE id > ?1 AND id <= ?2 AND key_hash IS NOT NULL ORDER BY key_hash
ON CONFLICT (key) DO NOTHING

-- name: folded
UPDATE message_keyed SET until = max(until, ?)

-- name: last_id
SELECT coalesce(max(id), 0) FROM message

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
INSERT INTO lane (channel, account, conversation, key, head, priority, oldest_at, newest_at, oldest_id, chars, due_at)
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
  oldest_id = coalesce(min(oldest_id, excluded.oldest_id), excluded.oldest_id),
  oldest_at = coalesce(min(oldest_at, excluded.oldest_at), excluded.oldest_at),
  newest_at = coalesce(max(newest_at, excluded.newest_at), excluded.newest_at)
RETURNING channel, account, conversation, key, id, head

-- name: keep_messages
INSERT INTO message (
  id, lane_id, number, sender, sender_name, direct, trust, external_id, provider_id, reply_to, topic, reply_url,
  event, payload, text, priority, received_at, key_hash, content_hash
) VALUES /*rows*/
