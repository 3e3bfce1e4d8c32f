-- name: at_work
SELECT id, lane_id, first, last, chars, rule, rule_version, state FROM batch
WHERE lane_id = ?1 AND state IN ('queued', 'leased') AND state = 'leased'
  AND alone = 0 AND attempts = 0 AND crashes = 0 AND deferrals = 0

-- name: steered_turn
SELECT batch.last, batch.last - batch.first + 1, batch.chars, batch.lane_id
FROM turn JOIN batch ON batch.id = turn.batch_id
WHERE turn.id = ?1 AND batch.id = ?2 AND batch.fence = ?3 AND batch.state = 'leased' AND batch.crashes = 0
  AND turn.state = 'open'

-- name: next_open
SELECT id, first, last, last_id, chars, rule, rule_version, priority FROM batch
WHERE lane_id = ?1 AND first > ?2 AND state IN ('queued', 'leased')
  AND state = 'queued' AND action = 'forward' AND attempts = 0 AND crashes = 0 AND deferrals = 0 AND steered IS NULL
  AND NOT EXISTS (SELECT 1 FROM turn WHERE turn.batch_id = batch.id AND turn.state = 'open')
  AND NOT EXISTS (
    SELECT 1 FROM batch AS before
    WHERE before.lane_id = ?1 AND before.first > ?2 AND before.state IN ('queued', 'leased') AND before.first < batch.first
  )

-- name: unrepeatable
SELECT 1 FROM turn JOIN step ON step.turn_id = turn.id
WHERE turn.batch_id = ? AND turn.state = 'open' AND step.repeatable = 0 LIMIT 1

-- name: has_turns
SELECT 1 FROM turn WHERE batch_id = ?1 UNION ALL SELECT 1 FROM reply WHERE batch_id = ?1 LIMIT 1

-- name: interrupt
UPDATE batch SET state = ?2, owner = NULL, lease_until = NULL, alone = 0 WHERE id = ?1

-- name: forget_batch
DELETE FROM batch WHERE id = ?

-- name: steer
UPDATE batch SET steered = ?2, steered_at = ?3 WHERE id = ?1

-- name: steered
SELECT id, steered_at, last, last - first + 1, chars, state FROM batch WHERE steered = ? AND state = 'queued' ORDER BY first

-- name: unseen
UPDATE batch SET steered = NULL, steered_at = NULL
WHERE steered = ?1 AND state = 'queued'
  AND steered_at > coalesce((SELECT max(n) FROM step WHERE turn_id = ?1 AND state = 'finished'), -1)

-- name: abandon
UPDATE turn SET state = 'abandoned', reason = ?2, ended_at = ?3 WHERE batch_id = ?1 AND state = 'open' RETURNING id

-- name: in_doubt
SELECT joined.id, joined.state FROM turn JOIN batch AS joined ON joined.steered = turn.id
WHERE turn.batch_id = ?1 AND turn.state = 'open' AND joined.state = 'queued' AND EXISTS (
  SELECT 1 FROM step WHERE step.turn_id = turn.id AND step.repeatable = 0 AND step.n > joined.steered_at
)

-- name: park
UPDATE batch SET state = ?2, error = ?3, later = 0, ended_at = ?4 WHERE id = ?1

-- name: unsteer
UPDATE batch SET steered = NULL, steered_at = NULL
WHERE steered = (SELECT id FROM turn WHERE batch_id = ?1 AND state = 'open') AND state = 'queued'
