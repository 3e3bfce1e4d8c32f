-- name: lane
SELECT id, head, batched FROM lane WHERE channel = ? AND account = ? AND conversation = ? AND key = ?

-- name: stand
SELECT lane.id, channel, account, conversation, lane.key, head, batched,
  tail.id, tail.first, tail.chars, tail.rule, tail.rule_version, tail.priority
FROM lane LEFT JOIN batch AS tail ON tail.id = (
  SELECT id FROM batch WHERE lane_id = lane.id AND state IN ('queued', 'leased') ORDER BY first DESC LIMIT 1
) AND tail.last = lane.batched AND tail.state = 'queued' AND tail.action = 'forward'
  AND tail.attempts = 0 AND tail.crashes = 0 AND tail.deferrals = 0 AND tail.steered IS NULL
  AND NOT EXISTS (SELECT 1 FROM turn WHERE turn.batch_id = tail.id AND turn.state = 'open')
WHERE (channel, account, conversation, lane.key) IN (VALUES /*rows*/)

-- name: extend_batch
UPDATE batch SET last = ?2, chars = chars + ?3, priority = min(priority, ?4), last_id = ?5 WHERE id = ?1

-- name: grow_batches
UPDATE batch SET last = new.last, chars = new.chars, priority = new.priority, last_id = new.last_id
FROM (
  SELECT column1 AS id, column2 AS last, column3 AS chars, column4 AS priority, column5 AS last_id
  FROM (VALUES /*rows*/)
) AS new
WHERE batch.id = new.id

-- name: keep_batches
INSERT INTO batch (
  id, lane_id, first, last, last_id, first_at, chars, state, action, rule, rule_version, reason, priority, ready_at,
  created_at, ended_at, task_id
) VALUES /*rows*/

-- name: pending_task
SELECT id FROM task INDEXED BY task_alike WHERE key = ? AND state = 'pending' AND fence = 0 AND rule <> ''

-- name: merge_task
UPDATE task SET description = iif(length(description) < ?4, description || char(10) || ?2, description),
  messages = messages + ?3, outside = max(outside, ?5), priority = min(priority, ?6) WHERE id = ?1

-- name: keep_task
INSERT INTO task (id, key, state, lane_id, rule, description, terms, outside, messages, priority, created_at)
VALUES (?, ?, 'pending', ?, ?, ?, ?, ?, ?, ?, ?)

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
  /*part back*/
)
SELECT message.number, message.id, message.received_at, message.priority, length(message.text)
FROM walk JOIN message ON message.id = walk.id
WHERE walk.number BETWEEN walk.first AND ?2 ORDER BY message.number

-- name: advance_lanes
UPDATE lane SET batched = new.batched, priority = new.priority, oldest_at = new.oldest_at, newest_at = new.newest_at,
  chars = new.chars, due_at = new.due_at
FROM (
  SELECT column1 AS id, column2 AS batched, column3 AS priority, column4 AS oldest_at, column5 AS newest_at,
    column6 AS chars, column7 AS due_at
  FROM (VALUES /*rows*/)
) AS new
WHERE lane.id = new.id

-- name: routed
INSERT INTO tally (what, name, n) VALUES ('routed', ?1, ?2) ON CONFLICT DO UPDATE SET n = n + excluded.n

-- name: clear_ready
DELETE FROM ready WHERE lane_id IN (SELECT value FROM carray(?1)) AND (
  NOT EXISTS (SELECT 1 FROM batch WHERE batch.lane_id = ready.lane_id AND batch.state IN ('queued', 'leased'))
  OR EXISTS (
    SELECT 1 FROM batch
    WHERE batch.lane_id = ready.lane_id AND batch.state IN ('queued', 'leased') AND batch.state = 'leased'
  )
)

-- name: set_ready
INSERT INTO ready (lane_id, batch_id, suspect, later, priority, first_at, ready_at)
SELECT lane_id, id, min(crashes, 2), later, priority, first_at, ready_at FROM batch AS head
WHERE id IN (
  SELECT (
    SELECT id FROM batch WHERE batch.lane_id = wanted.value AND batch.state IN ('queued', 'leased') ORDER BY first LIMIT 1
  ) FROM carray(?1) AS wanted
) AND state = 'queued'
  AND NOT EXISTS (
    SELECT 1 FROM batch
    WHERE batch.lane_id = head.lane_id AND batch.state IN ('queued', 'leased') AND batch.state = 'leased'
  )
ON CONFLICT (lane_id) DO UPDATE SET batch_id = excluded.batch_id, suspect = excluded.suspect,
  later = excluded.later, priority = excluded.priority, first_at = excluded.first_at, ready_at = excluded.ready_at
