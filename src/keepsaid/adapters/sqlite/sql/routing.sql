-- name: lane
SELECT id, head, batched FROM lane WHERE channel = ? AND account = ? AND conversation = ? AND key = ?

-- name: last_open
SELECT id, first, last, chars FROM batch
WHERE lane_id = ?1 AND last = ?2 AND state = 'queued' AND action = 'forward' AND rule = ?3 AND rule_version = ?4
  AND attempts = 0 AND crashes = 0 AND deferrals = 0
  AND NOT EXISTS (SELECT 1 FROM turn WHERE turn.batch_id = batch.id AND turn.state = 'open')

-- name: extend_batch
UPDATE batch SET last = ?2, chars = chars + ?3, priority = min(priority, ?4) WHERE id = ?1

-- name: keep_batch
INSERT INTO batch (
  id, lane_id, first, last, chars, state, action, rule, rule_version, reason, priority, first_at, ready_at, created_at,
  ended_at, task_id
) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11,
  (SELECT received_at FROM message WHERE lane_id = ?2 AND number = ?3), ?12, ?12, ?13, ?14)

-- name: pending_task
SELECT id FROM task WHERE key = ? AND state = 'pending'

-- name: merge_task
UPDATE task SET description = description || char(10) || ?2, messages = messages + ?3 WHERE id = ?1

-- name: keep_task
INSERT INTO task (id, key, state, lane_id, rule, description, messages, created_at) VALUES (?, ?, 'pending', ?, ?, ?, ?, ?)

-- name: episodes_due
INSERT OR IGNORE INTO episode_due (batch_id, lane_id, turn_id) VALUES (?, ?, ?)

-- name: rest_of_lane
SELECT min(priority), min(received_at), max(received_at), coalesce(sum(length(text)), 0), count(*)
FROM (SELECT priority, received_at, text FROM message WHERE lane_id = ?1 AND number > ?2 ORDER BY number LIMIT ?3)

-- name: advance_lane
UPDATE lane SET batched = ?2, priority = ?3, oldest_at = ?4, newest_at = ?5, chars = ?6, due_at = ?7 WHERE id = ?1

-- name: clear_ready
DELETE FROM ready WHERE lane_id = ?

-- name: set_ready
INSERT INTO ready (lane_id, batch_id, suspect, priority, first_at, ready_at)
SELECT lane_id, id, min(crashes, 2), priority, first_at, ready_at FROM (
  SELECT * FROM batch WHERE lane_id = ?1 AND state IN ('queued', 'leased') ORDER BY first LIMIT 1
) WHERE state = 'queued'
ON CONFLICT (lane_id) DO UPDATE SET batch_id = excluded.batch_id, suspect = excluded.suspect,
  priority = excluded.priority, first_at = excluded.first_at, ready_at = excluded.ready_at
