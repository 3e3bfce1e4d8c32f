-- name: count_turns
INSERT INTO memory_use (turn_id, at) SELECT CAST(turn.value ->> 'turn' AS INTEGER), CAST(turn.value ->> 'at' AS INTEGER)
FROM json_each(:uses) AS turn
WHERE true
ON CONFLICT DO NOTHING
RETURNING turn_id

-- name: count_uses
UPDATE memory SET access_count = memory.access_count + used.times,
  last_access_at = max(coalesce(memory.last_access_at, 0), used.at)
FROM (
  SELECT CAST(one.value AS INTEGER) AS memory_id, count(*) AS times, max(CAST(turn.value ->> 'at' AS INTEGER)) AS at
  FROM json_each(:uses) AS turn CROSS JOIN json_each(turn.value -> 'memories') AS one GROUP BY one.value
) AS used
WHERE memory.id = used.memory_id AND memory.state <> 'forgotten'

-- name: forget_turns
DELETE FROM memory_use WHERE turn_id IN (
  SELECT oldest.turn_id FROM (SELECT turn_id, at FROM memory_use ORDER BY turn_id LIMIT 16) AS oldest
  WHERE oldest.at < :before
)
