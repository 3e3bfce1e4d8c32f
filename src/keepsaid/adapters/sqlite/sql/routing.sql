-- name: lane
SELECT id, head, batched FROM lane WHERE channel = ? AND account = ? AND conversation = ? AND key = ?

-- name: last_open
SELECT id, first, last, chars FROM batch
WHERE lane_id = ?1 AND last = ?2 AND state = 'queued' AND action = 'forward' AND rule = ?3 AND rule_version = ?4
  AND attempts = 0 AND crashes = 0 AND deferrals = 0
  AND NOT EXISTS (SELECT 1 FROM turn WHERE turn.batch_id = batch.id AND turn.state = 'open')

-- name: extend_batch
UPDATE batch SET last = ?2, chars = chars + ?3, priority = min(priority, ?4), first_id = min(first_id, ?5),
  last_id = max(last_id, ?6) WHERE id = ?1

-- name: keep_batch
INSERT INTO batch (
  id, lane_id, first, last, first_id, last_id, first_at, chars, state, action, rule, rule_version, reason, priority,
  ready_at, created_at, ended_at, task_id
) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?15, ?16, ?17)

-- name: pending_task
SELECT id FROM task WHERE key = ? AND state = 'pending'

-- name: merge_task
UPDATE task SET description = description || char(10) || ?2, messages = messages + ?3 WHERE id = ?1

-- name: keep_task
INSERT INTO task (id, key, state, lane_id, rule, description, messages, created_at) VALUES (?, ?, 'pending', ?, ?, ?, ?, ?)

-- name: episodes_due
INSERT OR IGNORE INTO episode_due (batch_id, lane_id, turn_id) VALUES (?, ?, ?)

-- name: waiting
WITH RECURSIVE bucket (n, last) AS (
  SELECT oldest_id >> 37, (SELECT max(id) >> 37 FROM message) FROM lane WHERE id = ?1
  UNION ALL SELECT n + 1, last FROM bucket WHERE n < last
)
SELECT message.number, message.id, message.received_at, message.priority, length(message.text)
FROM lane CROSS JOIN bucket
CROSS JOIN message ON message.id >> 37 = bucket.n AND message.lane_id = lane.id
  AND message.number BETWEEN lane.batched + 1 AND ?2
WHERE lane.id = ?1 ORDER BY number

-- name: advance_lane
UPDATE lane SET batched = ?2, priority = ?3, oldest_at = ?4, newest_at = ?5, oldest_id = ?6, chars = ?7, due_at = ?8
WHERE id = ?1

-- name: clear_ready
DELETE FROM ready WHERE lane_id = ?

-- name: set_ready
INSERT INTO ready (lane_id, batch_id, suspect, priority, first_at, ready_at)
SELECT lane_id, id, min(crashes, 2), priority, first_at, ready_at FROM (
  SELECT * FROM batch WHERE lane_id = ?1 AND state IN ('queued', 'leased') ORDER BY first LIMIT 1
) AS head WHERE state = 'queued'
  AND NOT EXISTS (SELECT 1 FROM batch WHERE batch.lane_id = ?1 AND batch.state = 'leased')
ON CONFLICT (lane_id) DO UPDATE SET batch_id = excluded.batch_id, suspect = excluded.suspect,
  priority = excluded.priority, first_at = excluded.first_at, ready_at = excluded.ready_at
