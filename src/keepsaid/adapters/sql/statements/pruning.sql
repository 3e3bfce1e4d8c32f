-- name: begin
INSERT INTO prune_run (at, last_id) SELECT ?1, max(
  coalesce((SELECT max(id) FROM message), 0), coalesce((SELECT last_id FROM prune_run ORDER BY n DESC LIMIT 1), 0)
)

-- name: runs
SELECT at, last_id, messages FROM prune_run ORDER BY n DESC LIMIT ?

-- name: totals
SELECT (SELECT received_at FROM message ORDER BY id LIMIT 1), (SELECT coalesce(sum(messages), 0) FROM prune_run)

-- name: settled
SELECT id, ended_at, state NOT IN ('done', 'dropped')
  OR EXISTS (SELECT 1 FROM episode_due WHERE episode_due.batch_id = batch.id)
  OR EXISTS (SELECT 1 FROM reply WHERE reply.batch_id = batch.id AND reply.state NOT IN ('sent', 'not_deliverable'))
  OR EXISTS (SELECT 1 FROM task WHERE task.id = batch.task_id AND task.state NOT IN ('completed', 'failed', 'cancelled')),
  last - first + 1
FROM batch INDEXED BY batch_ended
WHERE kept = 1 AND ended_at IS NOT NULL AND ended_at < ?1 AND ended_at >= ?2 AND (ended_at > ?2 OR id > ?3)
ORDER BY ended_at, id LIMIT ?4

-- name: emptied
SELECT id, ended_at FROM batch INDEXED BY batch_pruned
WHERE kept = 0 AND ended_at < ?1 AND ended_at >= ?2 AND (ended_at > ?2 OR id > ?3)
ORDER BY ended_at, id LIMIT ?4

-- name: rows_of
WITH RECURSIVE walk (batch_id, id, number, previous_id, first) AS (
  SELECT batch.id, message.id, message.number, message.previous_id, batch.first
  FROM batch JOIN message ON message.id = batch.last_id WHERE batch.id IN (SELECT value FROM carray(?1))
  UNION ALL
  SELECT walk.batch_id, message.id, message.number, message.previous_id, walk.first
  FROM walk JOIN message ON message.id = walk.previous_id WHERE walk.number > walk.first
)
SELECT walk.batch_id, message.id, message.lane_id, message.number,
  octet_length(message.payload) + octet_length(message.text), message.trust = 'external', message.key_hash IS NOT NULL
FROM walk JOIN message ON message.id = walk.id ORDER BY message.number

-- name: forget_messages
DELETE FROM message WHERE id IN (SELECT value FROM carray(?))

-- name: forget_mark
DELETE FROM lane_mark WHERE lane_id = ? AND number = ?

-- name: note_lanes
UPDATE lane SET
  pruned = max(lane.pruned, gone.number),
  external_from = min(
    coalesce(lane.external_from, gone.external_from), coalesce(gone.external_from, lane.external_from)
  )
FROM (SELECT column1 AS id, column2 AS number, CAST(column3 AS INTEGER) AS external_from FROM (VALUES /*rows*/) AS made) AS gone
WHERE lane.id = gone.id

-- name: begun
UPDATE batch SET pruned_at = coalesce(pruned_at, ?2) WHERE id = ?1

-- name: empty
UPDATE batch SET kept = 0, pruned_at = coalesce(pruned_at, ?2) WHERE id IN (SELECT value FROM carray(?1))

-- name: count
UPDATE prune_run SET messages = messages + ? WHERE n = (SELECT max(n) FROM prune_run)

-- name: unprompt
UPDATE transcript SET unprompted = 1 WHERE role = 'assistant' AND turn_id IN (
  SELECT id FROM turn WHERE model = 'none' AND batch_id IN (SELECT value FROM carray(?))
)

-- name: forget_steps
DELETE FROM step WHERE turn_id IN (SELECT id FROM turn WHERE batch_id IN (SELECT value FROM carray(?)))

-- name: forget_traces
DELETE FROM trace WHERE turn_id IN (SELECT id FROM turn WHERE batch_id IN (SELECT value FROM carray(?)))

-- name: forget_injections
DELETE FROM injection WHERE turn_id IN (SELECT id FROM turn WHERE batch_id IN (SELECT value FROM carray(?)))

-- name: forget_replies
DELETE FROM reply WHERE batch_id IN (SELECT value FROM carray(?))

-- name: forget_turns
DELETE FROM turn WHERE batch_id IN (SELECT value FROM carray(?))

-- name: forget_batches
DELETE FROM batch WHERE id IN (SELECT value FROM carray(?))

-- name: forget_findings
DELETE FROM finding WHERE id IN (
  SELECT id FROM finding INDEXED BY finding_applied WHERE applied_at < ?1 ORDER BY applied_at, id LIMIT ?2
)

-- name: last_key
SELECT (SELECT key FROM (SELECT key FROM message_key WHERE key > ?1 ORDER BY key LIMIT ?2) AS found ORDER BY key DESC LIMIT 1)

-- name: forget_keys
DELETE FROM message_key WHERE key > ?1 AND key <= ?2 AND message_id <= ?3
  AND NOT EXISTS (SELECT 1 FROM message WHERE message.id = message_key.message_id)

-- name: prunable
SELECT coalesce(sum(iif(kept = 1 AND ended_at < ?1, last - first + 1, 0)), 0), coalesce(sum(iif(ended_at < min(?1, ?2), 1, 0)), 0)
FROM batch WHERE ended_at < max(?1, ?2) AND state IN ('done', 'dropped')
  AND NOT EXISTS (SELECT 1 FROM episode_due WHERE episode_due.batch_id = batch.id)
  AND NOT EXISTS (SELECT 1 FROM reply WHERE reply.batch_id = batch.id AND reply.state NOT IN ('sent', 'not_deliverable'))
  AND NOT EXISTS (
    SELECT 1 FROM task WHERE task.id = batch.task_id AND task.state NOT IN ('completed', 'failed', 'cancelled')
  )

-- name: backlog
SELECT
  (SELECT coalesce(sum(head - batched), 0) FROM lane WHERE due_at IS NOT NULL)
  + (SELECT coalesce(sum(last - first + 1), 0) FROM batch WHERE state IN ('queued', 'leased') AND state = 'queued'),
  (
    SELECT min(at) FROM (
      SELECT min(oldest_at) AS at FROM lane WHERE due_at IS NOT NULL
      UNION ALL SELECT min(first_at) FROM batch WHERE state IN ('queued', 'leased') AND state = 'queued'
    ) AS found
  )
