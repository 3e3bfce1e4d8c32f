-- name: judged
SELECT state FROM feedback WHERE turn_id = ?1 AND memory_id = ?2

-- name: shown
SELECT turn.lane_id FROM injection JOIN turn ON turn.id = injection.turn_id
WHERE injection.turn_id = ?1 AND injection.memory_id = ?2

-- name: judge
INSERT INTO feedback (turn_id, memory_id, lane_id, state, given_by, given_at) VALUES (?1, ?2, ?3, ?4, ?5, ?6)

-- name: judge_again
UPDATE feedback SET state = ?3, given_by = ?4, given_at = ?5 WHERE turn_id = ?1 AND memory_id = ?2

-- name: wrong_here
SELECT memory_id FROM feedback WHERE lane_id = ?1 AND state = 'wrong'

-- name: wrong_of_lane
SELECT turn_id, memory_id, state, given_by, given_at FROM feedback WHERE lane_id = ?1 AND state = 'wrong'
ORDER BY given_at DESC, turn_id DESC, memory_id

-- name: feedback
SELECT turn_id, memory_id, state, given_by, given_at FROM feedback WHERE memory_id = ?1
ORDER BY given_at DESC, turn_id DESC

-- name: feedback_of_turn
SELECT turn_id, memory_id, state, given_by, given_at FROM feedback WHERE turn_id = ?1 ORDER BY memory_id

-- name: reminded
SELECT turn_id, memory_id FROM injection
WHERE turn_id = (
  SELECT latest.id FROM (SELECT id FROM turn WHERE lane_id = ?1 ORDER BY id DESC LIMIT 20) AS latest
  WHERE EXISTS (SELECT 1 FROM injection AS any_shown WHERE any_shown.turn_id = latest.id)
  ORDER BY latest.id DESC LIMIT 1
)
ORDER BY rank

-- name: reminded_by
SELECT turn_id, memory_id FROM injection
WHERE turn_id = (
  SELECT reply.turn_id FROM (
    SELECT id FROM reply WHERE provider_id = ?1
    UNION
    SELECT reply_id FROM reply_part WHERE provider_id = ?1
  ) AS named CROSS JOIN reply ON reply.id = named.id
  WHERE reply.channel = ?2 AND reply.account = ?3 AND reply.conversation = ?4 AND notice = 0
  ORDER BY reply.id LIMIT 1
)
ORDER BY rank

-- name: shown_to
SELECT turn.id, lane.channel, lane.account, lane.conversation, lane.key, turn.started_at, injection.how
FROM injection JOIN turn ON turn.id = injection.turn_id JOIN lane ON lane.id = turn.lane_id
WHERE injection.memory_id = ?1 ORDER BY turn.id DESC

-- name: traces
SELECT turn.id, lane.channel, lane.account, lane.conversation, lane.key, turn.started_at, trace.body
FROM trace JOIN turn ON turn.id = trace.turn_id JOIN lane ON lane.id = turn.lane_id
ORDER BY trace.turn_id DESC LIMIT ?1
