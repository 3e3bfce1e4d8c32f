-- name: due
WITH RECURSIVE level (priority) AS (
  SELECT min(priority) FROM lane WHERE due_at IS NOT NULL
  UNION ALL
  SELECT (SELECT min(priority) FROM lane WHERE due_at IS NOT NULL AND lane.priority > level.priority)
  FROM level WHERE level.priority IS NOT NULL
)
SELECT lane.channel, lane.account, lane.conversation, lane.key, lane.batched, lane.head, lane.last_id, lane.oldest_at,
  lane.priority, lane.chars, EXISTS (
    SELECT 1 FROM paused_conversation AS paused WHERE paused.channel = lane.channel AND paused.account = lane.account
    AND paused.conversation = lane.conversation
  )
FROM level CROSS JOIN LATERAL (
  SELECT * FROM lane WHERE due_at IS NOT NULL AND lane.priority = level.priority AND due_at <= ?1
  ORDER BY due_at, id LIMIT ?2
) AS lane ORDER BY lane.priority, lane.due_at, lane.id
