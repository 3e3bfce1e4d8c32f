-- name: pause
INSERT INTO paused_conversation (channel, account, conversation, since)
SELECT channel, account, conversation, ?2 FROM lane WHERE lane.id = ?1 ON CONFLICT DO NOTHING

-- name: resume
DELETE FROM paused_conversation
WHERE (channel, account, conversation) = (SELECT channel, account, conversation FROM lane WHERE lane.id = ?1)

-- name: lanes_of
SELECT other.id FROM lane JOIN lane AS other USING (channel, account, conversation)
WHERE lane.id = ?1 AND EXISTS (SELECT 1 FROM batch WHERE batch.lane_id = other.id AND batch.state IN ('queued', 'leased'))
ORDER BY other.id

-- name: queued
SELECT id FROM batch
WHERE lane_id IN (SELECT value FROM carray(?1)) AND state IN ('queued', 'leased') AND state = 'queued'
  AND action = 'forward' ORDER BY id

-- name: commands_apart
UPDATE batch SET rule = 'command (paused)' WHERE id IN (SELECT value FROM carray(?1))

-- name: is_paused
SELECT EXISTS (SELECT 1 FROM paused_conversation WHERE channel = ? AND account = ? AND conversation = ?)

-- name: paused
SELECT paused.channel, paused.account, paused.conversation, paused.since, coalesce((
  SELECT sum(lane.head - lane.batched + coalesce((
    SELECT sum(last - first + 1) FROM batch
    WHERE batch.lane_id = lane.id AND batch.state IN ('queued', 'leased') AND batch.state = 'queued'
      AND batch.rule <> 'command (paused)'
  ), 0))
  FROM lane
  WHERE lane.channel = paused.channel AND lane.account = paused.account AND lane.conversation = paused.conversation
), 0)
FROM paused_conversation AS paused ORDER BY paused.since, paused.channel, paused.account, paused.conversation

-- name: begin_incognito
INSERT INTO incognito_span (lane_id, first) SELECT ?1, batch.first FROM batch
WHERE batch.id = ?2 AND NOT EXISTS (SELECT 1 FROM incognito_span WHERE lane_id = ?1 AND last IS NULL)
ON CONFLICT (lane_id, first) DO UPDATE SET last = NULL

-- name: end_incognito
UPDATE incognito_span SET last = max(first, (SELECT last FROM batch WHERE id = ?2)) WHERE lane_id = ?1 AND last IS NULL

-- name: is_incognito_on
SELECT EXISTS (SELECT 1 FROM incognito_span WHERE lane_id = ? AND last IS NULL)
