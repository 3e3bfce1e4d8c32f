-- name: lane
SELECT id, head, batched FROM lane WHERE channel = ? AND account = ? AND conversation = ? AND key = ?

-- name: stand
SELECT lane.id, channel, account, conversation, lane.key, head, batched,
  tail.id, tail.first, tail.chars, tail.rule, tail.rule_version, tail.priority, EXISTS (
    SELECT 1 FROM paused_conversation AS paused
    WHERE paused.channel = lane.channel AND paused.account = lane.account AND paused.conversation = lane.conversation
  )
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
  FROM (VALUES /*rows*/) AS made
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

-- name: incognito_between
SELECT EXISTS (
  SELECT 1 FROM incognito_span WHERE lane_id = ?1 AND first <= ?3 AND coalesce(last, ?3) >= ?2
)

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
  SELECT column1 AS id, column2 AS batched, column3 AS priority, CAST(column4 AS INTEGER) AS oldest_at,
    CAST(column5 AS INTEGER) AS newest_at, column6 AS chars, CAST(column7 AS INTEGER) AS due_at
  FROM (VALUES /*rows*/) AS made
) AS new
WHERE lane.id = new.id

-- name: routed
INSERT INTO tally (what, name, n) VALUES ('routed', ?1, ?2) ON CONFLICT (what, name) DO UPDATE SET n = tally.n + excluded.n

-- name: clear_ready
DELETE FROM ready WHERE lane_id IN (SELECT value FROM carray(?1)) AND (
  NOT EXISTS (SELECT 1 FROM batch WHERE batch.lane_id = ready.lane_id AND batch.state IN ('queued', 'leased'))
  OR EXISTS (
    SELECT 1 FROM batch
    WHERE batch.lane_id = ready.lane_id AND batch.state IN ('queued', 'leased') AND batch.state = 'leased'
  )
  OR NOT EXISTS (
    SELECT 1 FROM batch
    WHERE batch.lane_id = ready.lane_id AND batch.state IN ('queued', 'leased') AND /*part may_start*/
  )
)

-- name: set_ready
INSERT INTO ready (lane_id, batch_id, suspect, later, priority, first_at, ready_at)
SELECT lane_id, id, min(crashes, 2), later, priority, first_at, ready_at FROM batch AS head
WHERE id IN (
  SELECT (
    SELECT id FROM batch
    WHERE batch.lane_id = wanted.value AND batch.state IN ('queued', 'leased') AND /*part may_start*/
    ORDER BY first LIMIT 1
  ) FROM carray(?1) AS wanted
) AND state = 'queued'
  AND NOT EXISTS (
    SELECT 1 FROM batch
    WHERE batch.lane_id = head.lane_id AND batch.state IN ('queued', 'leased') AND batch.state = 'leased'
  )
ON CONFLICT (lane_id) DO UPDATE SET batch_id = excluded.batch_id, suspect = excluded.suspect,
  later = excluded.later, priority = excluded.priority, first_at = excluded.first_at, ready_at = excluded.ready_at

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
  AND /*part may_start*/
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
ORDER BY joined.id

-- name: park
UPDATE batch SET state = ?2, error = ?3, later = 0, ended_at = ?4 WHERE id = ?1

-- name: unsteer
UPDATE batch SET steered = NULL, steered_at = NULL
WHERE steered = (SELECT id FROM turn WHERE batch_id = ?1 AND state = 'open') AND state = 'queued'
