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
UNION ALL
SELECT lane.key FROM reply_part JOIN reply ON reply.id = reply_part.reply_id JOIN lane ON lane.id = reply.lane_id
WHERE reply_part.provider_id = ?1 AND lane.channel = ?2 AND lane.account = ?3 AND lane.conversation = ?4
LIMIT 1

-- name: lately
WITH RECURSIVE back (id, previous_id, lane_id) AS (
  SELECT message.id, message.previous_id, message.lane_id FROM lane JOIN message ON message.id = lane.last_id
  WHERE lane.channel = ?1 AND lane.account = ?2 AND lane.conversation = ?3 AND substr(lane.key, 1, 6) <> 'topic:'
  UNION ALL
  SELECT message.id, message.previous_id, message.lane_id FROM back JOIN message ON message.id = back.previous_id
  ORDER BY 1 DESC LIMIT ?4
)
SELECT message.id, lane.key, sender, sender_name, provider_id, reply_to, substr(text, 1, ?5), received_at
FROM back JOIN message ON message.id = back.id JOIN lane ON lane.id = back.lane_id
ORDER BY message.id DESC

-- name: answers
SELECT lane.key, transcript.turn_id, transcript.ref, transcript.text, transcript.created_at,
  (SELECT reply.provider_id FROM reply WHERE reply.turn_id = transcript.turn_id AND reply.provider_id IS NOT NULL)
FROM lane JOIN transcript ON transcript.lane_id = lane.id AND transcript.position > lane.transcript - ?5
WHERE lane.channel = ?1 AND lane.account = ?2 AND lane.conversation = ?3 AND lane.key IN (SELECT value FROM carray(?4))
ORDER BY lane.id, transcript.position

-- name: extend_lanes
INSERT INTO lane (channel, account, conversation, key, head, priority, oldest_at, newest_at, last_id, chars, due_at)
VALUES /*rows*/
ON CONFLICT (channel, account, conversation, key) DO UPDATE SET
  head = lane.head + excluded.head,
  priority = coalesce(min(iif(lane.oldest_at IS NULL, NULL, lane.priority), excluded.priority), excluded.priority),
  chars = lane.chars + excluded.chars,
  due_at = iif(
    lane.head - lane.batched + excluded.head >= ? OR lane.chars + excluded.chars >= ?,
    excluded.newest_at,
    min(
      max(
        coalesce(min(lane.oldest_at, excluded.oldest_at), excluded.oldest_at) + ?,
        coalesce(max(lane.newest_at, excluded.newest_at), excluded.newest_at) + ?
      ),
      coalesce(min(lane.oldest_at, excluded.oldest_at), excluded.oldest_at) + ?
    )
  ),
  before_id = lane.last_id,
  last_id = excluded.last_id,
  oldest_at = coalesce(min(lane.oldest_at, excluded.oldest_at), excluded.oldest_at),
  newest_at = coalesce(max(lane.newest_at, excluded.newest_at), excluded.newest_at)
/*RETURNING channel, account, conversation, key, id, head, before_id*/

-- name: extend_known_lanes
UPDATE lane SET
  head = new.head,
  last_id = new.last_id,
  priority = coalesce(min(iif(lane.oldest_at IS NULL, NULL, lane.priority), new.priority), new.priority),
  chars = lane.chars + new.chars,
  due_at = iif(
    new.head - lane.batched >= ? OR lane.chars + new.chars >= ?,
    new.newest_at,
    min(
      max(
        coalesce(min(lane.oldest_at, new.oldest_at), new.oldest_at) + ?,
        coalesce(max(lane.newest_at, new.newest_at), new.newest_at) + ?
      ),
      coalesce(min(lane.oldest_at, new.oldest_at), new.oldest_at) + ?
    )
  ),
  newest_at = coalesce(max(lane.newest_at, new.newest_at), new.newest_at)
FROM (
  SELECT column1 AS id, column2 AS old_head, column3 AS head, column4 AS priority, CAST(column5 AS INTEGER) AS oldest_at,
    column6 AS newest_at, column7 AS last_id, column8 AS chars
  FROM (VALUES /*rows*/) AS made
) AS new
WHERE lane.id = new.id AND lane.head = new.old_head

-- name: begin_waiting
UPDATE lane SET oldest_at = new.oldest_at
FROM (SELECT column1 AS id, column2 AS oldest_at FROM (VALUES /*rows*/) AS made) AS new
WHERE lane.id = new.id AND lane.oldest_at IS NULL

-- name: heard
INSERT INTO tally (what, name, n) VALUES ('heard', ?1, ?2) ON CONFLICT (what, name) DO UPDATE SET n = tally.n + excluded.n

-- name: places
SELECT json_group_array(json_array(channel, account, conversation, key, id, head, before_id))
FROM lane WHERE (channel, account, conversation, key) IN (VALUES /*rows*/)

-- name: keep_messages
INSERT INTO message (
  id, lane_id, number, previous_id, sender, sender_name, direct, trust, external_id, provider_id, reply_to, topic, reply_url,
  event, payload, text, priority, received_at, key_hash, content_hash, seal
) VALUES /*rows*/

-- name: keep_marks
INSERT INTO lane_mark (lane_id, number, message_id) VALUES /*rows*/

-- name: keep_addressed
INSERT INTO addressed (message_id) VALUES /*rows*/

-- name: keep_files
INSERT INTO file (message_id, n, state, name, kind, size, ref, next_at) VALUES /*rows*/

-- name: keep_placed
INSERT INTO placed (message_id, reason) VALUES (?, ?)
ON CONFLICT (message_id) DO UPDATE SET reason = substr(placed.reason || '; ' || excluded.reason, 1, 2000)
