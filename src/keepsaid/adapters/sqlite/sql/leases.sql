-- name: leased
SELECT count(*), coalesce(max(alone), 0), coalesce(sum(crashes = 1), 0) FROM batch WHERE state = 'leased'

-- name: ready
SELECT batch_id, priority, first_at, batch_id FROM ready WHERE suspect = ?1 AND ready_at <= ?2
ORDER BY priority, first_at, batch_id LIMIT ?3

-- name: lease
UPDATE batch SET state = ?2, owner = ?3, lease_until = ?4, alone = ?5, fence = fence + 1 WHERE id = ?1

-- name: batch
SELECT batch.id, lane.channel, lane.account, lane.conversation, lane.key, first, last, state, action, rule, rule_version,
  reason, batch.priority, fence, attempts, crashes, deferrals, created_at, lane_id, task_id, alone, error
FROM batch JOIN lane ON lane.id = batch.lane_id WHERE batch.id = ?

-- name: open_turn
SELECT id FROM turn WHERE batch_id = ? AND state = 'open'

-- name: start_turn
INSERT INTO turn (id, lane_id, batch_id, state, started_at) VALUES (?, ?, ?, 'open', ?)

-- name: steps
SELECT n, kind, subject, input_hash, state, output, tokens_in, tokens_out, cost_micros FROM step WHERE turn_id = ? ORDER BY n

-- name: renew
UPDATE batch SET lease_until = ?3 WHERE id = ?1 AND fence = ?2 AND state = 'leased'

-- name: held
SELECT state, lane_id, attempts FROM batch WHERE id = ?1 AND fence = ?2 AND state = 'leased'

-- name: state
SELECT state, lane_id FROM batch WHERE id = ?

-- name: release
UPDATE batch SET state = ?2, owner = NULL, lease_until = NULL, alone = 0, ready_at = max(ready_at, ?3),
  deferrals = deferrals + ?4, crashes = iif(?4, 0, crashes) WHERE id = ?1

-- name: settle
UPDATE batch SET state = ?2, owner = NULL, lease_until = NULL, alone = 0, attempts = attempts + ?3, crashes = 0,
  error = ?4, ready_at = ?5, ended_at = ?6 WHERE id = ?1

-- name: crashed
UPDATE batch SET state = ?2, owner = NULL, lease_until = NULL, attempts = attempts + alone, alone = 0,
  crashes = crashes + 1, error = ?3, ended_at = ?4 WHERE id = ?1

-- name: in_flight
SELECT id, lane_id, state, attempts, alone FROM batch WHERE state = 'leased' AND owner <> ? ORDER BY id

-- name: owned
SELECT id, lane_id, state FROM batch WHERE state = 'leased' AND owner = ?

-- name: expired
SELECT id, lane_id, state FROM batch WHERE state = 'leased' AND lease_until <= ? ORDER BY id

-- name: requeue
UPDATE batch SET state = ?2, action = 'forward', attempts = 0, crashes = 0, deferrals = 0, ready_at = ?3, ended_at = NULL,
  error = '', reason = ?4 WHERE id = ?1

-- name: abandon
UPDATE turn SET state = 'abandoned', reason = ?2, ended_at = ?3 WHERE batch_id = ?1 AND state = 'open'
