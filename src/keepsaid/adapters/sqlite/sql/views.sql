-- name: due
SELECT id, channel, account, conversation, key, batched FROM lane WHERE due_at <= ? ORDER BY priority, oldest_at, id LIMIT ?

-- name: waiting
WITH RECURSIVE walk (id, number, previous_id, first) AS (
  SELECT message.id, message.number, message.previous_id, lane.batched + 1
  FROM lane JOIN message ON message.id = coalesce(
    (SELECT message_id FROM lane_mark WHERE lane_id = lane.id AND number >= lane.batched + ?2 ORDER BY number LIMIT 1),
    lane.last_id
  )
  WHERE lane.id = ?1
  UNION ALL
  SELECT message.id, message.number, message.previous_id, walk.first
  FROM walk JOIN message ON message.id = walk.previous_id WHERE walk.number > walk.first
)
SELECT message.id, lane.channel, lane.account, lane.conversation, lane.key, message.number, sender, sender_name, direct,
  trust, external_id, provider_id, reply_to, topic, reply_url, event, payload, text, message.priority, received_at
FROM walk JOIN message ON message.id = walk.id JOIN lane ON lane.id = message.lane_id
WHERE walk.number BETWEEN walk.first AND lane.batched + ?2 ORDER BY message.number

-- name: next_due
SELECT min(due_at) FROM lane WHERE due_at IS NOT NULL

-- name: next_ready
SELECT min(ready_at) FROM ready

-- name: batch_of
SELECT id FROM batch WHERE lane_id = ?1 AND first <= ?2 AND last >= ?2 ORDER BY first DESC LIMIT 1

-- name: lane_of_message
SELECT lane_id, number FROM message WHERE id = ?

-- name: turn_of_batch
SELECT id FROM turn WHERE batch_id = ? ORDER BY id DESC LIMIT 1

-- name: replies_of_batch
SELECT reply.id, lane.channel, lane.account, lane.conversation, lane.key, turn_id, state, reply.text, notice, url,
  reply_to, fence, attempts, possible_duplicate, created_at
FROM reply JOIN lane ON lane.id = reply.lane_id WHERE reply.batch_id = ? ORDER BY reply.id

-- name: find
SELECT message.id FROM message JOIN lane ON lane.id = message.lane_id
WHERE (?1 IS NULL OR lane.channel = ?1) AND (?2 IS NULL OR lane.conversation = ?2)
  AND (?3 IS NULL OR ?3 = coalesce((
    SELECT CASE WHEN batch.state IN ('done', 'dropped', 'review', 'dead') THEN batch.state ELSE 'batched' END
    FROM batch WHERE batch.lane_id = message.lane_id AND batch.first <= message.number AND batch.last >= message.number
    ORDER BY batch.first DESC LIMIT 1
  ), 'received'))
ORDER BY message.id DESC LIMIT ?4

-- name: depth
SELECT channel, sum(head - batched), min(oldest_at) FROM lane WHERE due_at IS NOT NULL GROUP BY channel ORDER BY channel

-- name: channels
SELECT DISTINCT channel FROM lane ORDER BY channel

-- name: batches
SELECT state, count(*) FROM batch GROUP BY state

-- name: replies
SELECT state, count(*) FROM reply GROUP BY state

-- name: tasks
SELECT state, count(*) FROM task GROUP BY state

-- name: turns
SELECT state, count(*), sum(tokens_in), sum(tokens_out), sum(cost_micros) FROM turn GROUP BY state

-- name: totals
SELECT (SELECT count(*) FROM episode_due), (SELECT coalesce(sum(head), 0) FROM lane)

-- name: work
SELECT episode_due.batch_id, episode_due.turn_id
FROM episode_due JOIN lane ON lane.id = episode_due.lane_id
WHERE ?1 IS NULL OR lane.conversation = ?1 ORDER BY episode_due.batch_id LIMIT ?2

-- name: answer
SELECT text, created_at FROM transcript WHERE turn_id = ?1 AND ref = 'reply:' || ?1

-- name: recent
SELECT role, text, calls, call_id, speaker, ref FROM transcript WHERE lane_id = ?1 ORDER BY position DESC LIMIT ?2

-- name: records
SELECT role, text, calls, call_id, speaker FROM transcript WHERE turn_id = ? ORDER BY position

-- name: turn
SELECT batch_id, state, reason, tokens_in, tokens_out, cost_micros, started_at, ended_at FROM turn WHERE id = ?

-- name: last_turn
SELECT id FROM turn WHERE state <> 'open' ORDER BY id DESC LIMIT 1

-- name: last_turn_of_lane
SELECT id FROM turn WHERE state <> 'open' AND lane_id = ? ORDER BY id DESC LIMIT 1

-- name: unseen
SELECT reply.id, lane.channel, lane.account, lane.conversation, lane.key, turn_id, state, reply.text, notice, url,
  reply_to, fence, attempts, possible_duplicate, created_at
FROM reply JOIN lane ON lane.id = reply.lane_id
WHERE reply.state = 'pending' AND reply.url IS NULL AND reply.channel = ?1 AND reply.conversation = ?2 ORDER BY reply.id

-- name: next_send
SELECT min(next_at) FROM (
  SELECT * FROM (
    SELECT next_at FROM reply AS head
    WHERE state IN ('pending', 'unknown') AND url IS NOT NULL AND NOT EXISTS (
      SELECT 1 FROM reply AS earlier
      WHERE earlier.state IN ('pending', 'sending', 'unknown') AND earlier.channel = head.channel
        AND earlier.account = head.account AND earlier.conversation = head.conversation AND earlier.id < head.id
        AND (earlier.url IS NOT NULL OR earlier.channel IN (SELECT value FROM json_each(?1)))
    )
    ORDER BY next_at LIMIT 1
  )
  UNION ALL
  SELECT * FROM (
    SELECT next_at FROM reply AS head
    WHERE state IN ('pending', 'unknown') AND channel IN (SELECT value FROM json_each(?1)) AND NOT EXISTS (
      SELECT 1 FROM reply AS earlier
      WHERE earlier.state IN ('pending', 'sending', 'unknown') AND earlier.channel = head.channel
        AND earlier.account = head.account AND earlier.conversation = head.conversation AND earlier.id < head.id
    )
    ORDER BY next_at LIMIT 1
  )
)
