-- name: lane
SELECT id, head, batched FROM lane WHERE channel = ? AND account = ? AND conversation = ? AND key = ?

-- name: last_open
SELECT id, first, last, chars FROM (SELECT * FROM batch WHERE lane_id = ?1 ORDER BY first DESC LIMIT 1) AS newest
WHERE last = ?2 AND state = 'queued' AND action = 'forward' AND rule = ?3 AND rule_version = ?4
  AND attempts = 0 AND crashes = 0 AND deferrals = 0 AND steered IS NULL
  AND NOT EXISTS (SELECT 1 FROM turn WHERE turn.batch_id = newest.id AND turn.state = 'open')

-- name: extend_batch
UPDATE batch SET last = ?2, chars = chars + ?3, priority = min(priority, ?4), last_id = ?5 WHERE id = ?1

-- name: keep_batch
INSERT INTO batch (
  id, lane_id, first, last, last_id, first_at, chars, state, action, rule, rule_version, reason, priority, ready_at,
  created_at, ended_at, task_id
) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?14, ?15, ?16)

-- name: pending_task
SELECT id FROM task WHERE key = ? AND state = 'pending'

-- name: merge_task
UPDATE task SET description = iif(length(description) < ?4, description || char(10) || ?2, description),
  messages = messages + ?3 WHERE id = ?1

-- name: keep_task
INSERT INTO task (id, key, state, lane_id, rule, description, messages, created_at) VALUES (?, ?, 'pending', ?, ?, ?, ?, ?)

-- name: episodes_due
INSERT OR IGNORE INTO episode_due (batch_id, lane_id, turn_id) VALUES (?, ?, ?)

-- name: waiting
WITH RECURSIVE walk (id, number, previous_id, first) AS (
  SELECT message.id, message.number, message.previous_id, lane.batched + 1
  FROM lane JOIN message ON message.id = coalesce(
    (SELECT message_id FROM lane_mark WHERE lane_id = lane.id AND number >= ?2 ORDER BY number LIMIT 1),
    lane.last_id
  )
  WHERE lane.id = ?1
  UNION ALL
  SELECT message.id, message.number, message.previous_id, walk.first
  FROM walk JOIN message ON message.id = walk.previous_id WHERE walk.number > walk.first
)
SELECT message.number, message.id, message.received_at, message.priority, length(message.text)
FROM walk JOIN message ON message.id = walk.id
WHERE walk.number BETWEEN walk.first AND ?2 ORDER BY message.number

-- name: advance_lane
UPDATE lane SET batched = ?2, priority = ?3, oldest_at = ?4, newest_at = ?5, chars = ?6, due_at = ?7
WHERE id = ?1

-- name: routed
INSERT INTO tally (what, name, n) VALUES ('routed', ?1, ?2) ON CONFLICT DO UPDATE SET n = n + excluded.n

-- name: clear_ready
DELETE FROM ready WHERE lane_id = ?

-- name: set_ready
INSERT INTO ready (lane_id, batch_id, suspect, later, priority, first_at, ready_at)
SELECT lane_id, id, min(crashes, 2), later, priority, first_at, ready_at FROM (
  SELECT * FROM batch WHERE lane_id = ?1 AND state IN ('queued', 'leased') ORDER BY first LIMIT 1
) AS head WHERE state = 'queued'
  AND NOT EXISTS (
    SELECT 1 FROM batch WHERE batch.lane_id = ?1 AND batch.state IN ('queued', 'leased') AND batch.state = 'leased'
  )
ON CONFLICT (lane_id) DO UPDATE SET batch_id = excluded.batch_id, suspect = excluded.suspect,
  later = excluded.later, priority = excluded.priority, first_at = excluded.first_at, ready_at = excluded.ready_at
