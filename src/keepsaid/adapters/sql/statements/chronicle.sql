-- name: batch_of_turn
SELECT batch_id FROM turn WHERE id = ?

-- name: known_batch
SELECT lane_id, first, first_at, later, ended_at, owner, lease_until, alone, task_id FROM batch WHERE id = ?

-- name: ahead
SELECT id FROM batch WHERE lane_id = ?1 AND first < ?2 AND state IN ('queued', 'leased') ORDER BY first LIMIT 1

-- name: due_at
SELECT due_at FROM lane WHERE id = ?

-- name: turns
SELECT id, state, reason, model, tokens_in, tokens_out, cost_micros, started_at, ended_at FROM turn
WHERE id IN (
  SELECT id FROM turn WHERE batch_id = ?1 UNION ALL SELECT steered FROM batch WHERE id = ?1 AND state <> 'queued'
) ORDER BY id

-- name: steps
SELECT n, kind, subject, state, tries, tokens_in, tokens_out, cost_micros, started_at, ended_at FROM step
WHERE turn_id = ? ORDER BY n

-- name: reply
SELECT next_at, ended_at, provider_id FROM reply WHERE id = ?

-- name: moves
SELECT verb, at, detail FROM reply_move WHERE reply_id = ? ORDER BY n

-- name: decided
SELECT /*part message*/, batch.action, batch.rule, batch.rule_version, batch.reason
FROM message JOIN lane ON lane.id = message.lane_id
LEFT JOIN batch ON batch.id = (
  SELECT earlier.id FROM batch AS earlier
  WHERE earlier.lane_id = message.lane_id AND earlier.first <= message.number
  ORDER BY earlier.first DESC LIMIT 1
) AND batch.last >= message.number
WHERE message.received_at >= ?1 AND message.id < ?2 ORDER BY message.id DESC LIMIT ?3
