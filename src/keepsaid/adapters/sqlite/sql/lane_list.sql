-- name: lanes
SELECT lane.channel, lane.account, lane.conversation, lane.key,
  coalesce((SELECT received_at FROM message WHERE message.id = lane.last_id), 0),
  lane.head - lane.batched + coalesce(
    (SELECT sum(last - first + 1) FROM batch WHERE batch.lane_id = lane.id AND state IN ('queued', 'leased')), 0),
  coalesce((SELECT state FROM session WHERE session.lane_id = lane.id ORDER BY id DESC LIMIT 1), '-'),
  coalesce(lane_context.summary, 0),
  lane.transcript - max(coalesce(lane_context.summarised_until, 0), coalesce(lane_context.floor, 0))
FROM lane LEFT JOIN lane_context ON lane_context.lane_id = lane.id
ORDER BY lane.last_id DESC LIMIT ?

-- name: line
SELECT lane.channel, lane.account, lane.conversation, lane.key,
  coalesce((SELECT received_at FROM message WHERE message.id = lane.last_id), 0),
  lane.head - lane.batched + coalesce(
    (SELECT sum(last - first + 1) FROM batch WHERE batch.lane_id = lane.id AND state IN ('queued', 'leased')), 0),
  coalesce((SELECT state FROM session WHERE session.lane_id = lane.id ORDER BY id DESC LIMIT 1), '-'),
  coalesce(lane_context.summary, 0),
  lane.transcript - max(coalesce(lane_context.summarised_until, 0), coalesce(lane_context.floor, 0))
FROM lane LEFT JOIN lane_context ON lane_context.lane_id = lane.id
WHERE lane.channel = ?1 AND lane.account = ?2 AND lane.conversation = ?3 AND lane.key = ?4

-- name: versions
SELECT version, first, last, text, kind, model, created_at FROM lane_summary WHERE lane_id = ? ORDER BY version DESC
