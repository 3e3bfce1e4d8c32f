-- name: TurnRow
SELECT turn.id, turn.batch_id, turn.state, committed.id, turn.reason FROM turn
LEFT JOIN (
  SELECT id, CAST(CAST(payload AS json) ->> 'turn' AS bigint) AS turn_id FROM journal WHERE topic = 'turn.committed'
) AS committed ON committed.turn_id = turn.id
ORDER BY committed.id, turn.id

-- name: CommandRow
SELECT CAST(correlation_id AS bigint), CAST(payload AS json) ->> 'name' FROM journal WHERE topic = 'command.executed'

-- name: tasks
WITH RECURSIVE reviewed(id) AS (
  SELECT id FROM task WHERE state = 'needs_review'
  UNION SELECT task_id FROM task_after JOIN reviewed ON reviewed.id = after_id
)
SELECT id, CASE WHEN state = 'blocked' AND id IN (SELECT id FROM reviewed) THEN 'needs_review' ELSE state END, (
  SELECT count(*) FROM journal WHERE correlation_id = CAST(task.id AS text)
    AND topic IN ('task.completed', 'task.failed', 'task.cancelled') AND correlation_id <> ''
) FROM task

-- name: mistaught
SELECT subject FROM memory WHERE attribute = 'place' AND subject LIKE 'thing %'
GROUP BY subject HAVING count(*) FILTER (WHERE superseded_by IS NULL) <> 1 OR count(*) > 4 OR sum(evidence_count) > 4

-- name: Head
SELECT lane.id, coalesce(version, 0), greatest(coalesce(summarised_until, 0), coalesce(floor, 0)), transcript,
  (SELECT count(*) FROM transcript WHERE lane_id = lane.id AND position BETWEEN 1 AND lane.transcript),
  coalesce((
    SELECT role FROM transcript WHERE lane_id = lane.id
      AND position = 1 + greatest(coalesce(summarised_until, 0), coalesce(lane_context.floor, 0))
  ), ''),
  (SELECT count(*) FROM lane_summary WHERE lane_id = lane.id AND version = summary AND trim(text) <> '') = 1
    OR summary IS NULL
FROM lane LEFT JOIN lane_context ON lane_context.lane_id = lane.id

-- name: damage
SELECT 'ok'
