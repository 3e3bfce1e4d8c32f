-- name: asleep
SELECT 1 FROM ready WHERE later = 1 AND (CAST(?1 AS INTEGER) IS NULL OR ready_at <= ?1) LIMIT 1

-- name: wake_batches
UPDATE batch SET later = 0 WHERE id IN (SELECT batch_id FROM ready WHERE later = 1 AND (CAST(?1 AS INTEGER) IS NULL OR ready_at <= ?1))

-- name: wake
UPDATE ready SET later = 0 WHERE later = 1 AND (CAST(?1 AS INTEGER) IS NULL OR ready_at <= ?1)

-- whether anything wakes, anything is leased, anything is leased alone or after one crash, and anything ready is suspect
-- name: look
SELECT EXISTS (SELECT 1 FROM ready WHERE later = 1 AND ready_at <= ?1),
  EXISTS (SELECT 1 FROM batch WHERE state = 'leased'),
  coalesce(max(alone), 0), coalesce(max(iif(crashes = 1, 1, 0)), 0),
  EXISTS (SELECT 1 FROM ready WHERE later = 0 AND suspect > 0)
FROM batch WHERE state = 'leased' AND crashes > 0

-- the best of every level of priority
-- name: ready
WITH RECURSIVE level (priority) AS (
  SELECT min(priority) FROM ready WHERE later = 0 AND suspect = ?1
  UNION ALL
  SELECT (SELECT min(priority) FROM ready WHERE later = 0 AND suspect = ?1 AND ready.priority > level.priority)
  FROM level WHERE level.priority IS NOT NULL
)
SELECT ready.batch_id, ready.priority, ready.first_at, ready.ready_at
FROM level CROSS JOIN ready ON ready.lane_id IN (
  SELECT best.lane_id FROM ready AS best WHERE best.later = 0 AND best.suspect = ?1 AND best.priority = level.priority
  ORDER BY best.first_at, best.batch_id LIMIT ?2
)

-- name: next_trial
SELECT ready.batch_id, ready.priority, ready.first_at, ready.ready_at + trial_after_ms
FROM ready INDEXED BY ready_next JOIN batch ON batch.id = ready.batch_id
WHERE ready.later = 0 AND ready.suspect = 2 AND trial_after_ms <= ?1
ORDER BY ready.priority, ready.first_at, ready.batch_id LIMIT 1

-- name: begin_trial
UPDATE life SET trial_ms = ?2, lived_ms = ?2, due_ms = ?3 WHERE owner = ?1

-- name: lease
UPDATE batch SET state = ?2, owner = ?3, lease_until = ?4, alone = ?5, fence = fence + 1 WHERE id IN (SELECT value FROM carray(?1))

-- name: batch
SELECT lane_id, task_id, batch.id, lane.channel, lane.account, lane.conversation, lane.key, first, last, state,
  action, rule, rule_version, reason, batch.priority, fence, attempts, crashes, deferrals, created_at, error, ready_at,
  pruned_at, deferred_from, trial_after_ms, survived
FROM batch JOIN lane ON lane.id = batch.lane_id WHERE batch.id IN (SELECT value FROM carray(?))

-- name: open_turns
SELECT batch_id, id FROM turn WHERE batch_id IN (SELECT value FROM carray(?)) AND state = 'open'

-- name: not_ready
DELETE FROM ready WHERE lane_id IN (SELECT value FROM carray(?))

-- name: start_turns
INSERT INTO turn (id, lane_id, batch_id, state, started_at) VALUES /*rows*/

-- name: steps
SELECT n, kind, subject, input_hash, state, output, tokens_in, tokens_out, cost_micros, repeatable FROM step WHERE turn_id = ? ORDER BY n
