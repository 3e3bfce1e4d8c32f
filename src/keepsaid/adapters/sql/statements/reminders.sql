-- name: lately
SELECT DISTINCT injection.memory_id
FROM (SELECT id FROM turn WHERE lane_id = ?1 AND state = 'committed' ORDER BY id DESC LIMIT ?2) AS last
CROSS JOIN injection ON injection.turn_id = last.id
WHERE injection.how = 'injected'

-- name: reminded
SELECT turn.id FROM turn
WHERE turn.lane_id = ?1 AND turn.state = 'committed'
AND EXISTS (SELECT 1 FROM injection WHERE injection.turn_id = turn.id AND injection.how = 'injected')
ORDER BY turn.id DESC LIMIT ?2

-- name: begins
SELECT position FROM transcript
WHERE lane_id = ?1 AND turn_id = ?2 AND unprompted = 0 AND position > (
  SELECT coalesce(max(max(summarised_until, floor)), 0) FROM lane_context WHERE lane_context.lane_id = ?1
)
ORDER BY position LIMIT 1

-- name: shown
SELECT memory_id FROM injection WHERE turn_id = ?1 AND how = 'injected' ORDER BY rank
