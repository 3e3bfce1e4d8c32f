-- name: of
SELECT /*part task*/ WHERE task.id IN (SELECT value FROM carray(?)) ORDER BY task.id

-- name: find
SELECT /*part task*/ WHERE (CAST(?1 AS TEXT) IS NULL OR task.state = ?1)
  AND (CAST(?2 AS TEXT) IS NULL OR task.key = ?2) AND (CAST(?3 AS INTEGER) IS NULL OR task.lane_id = ?3)
ORDER BY task.id DESC LIMIT ?4

-- name: due
SELECT id FROM task INDEXED BY task_due
WHERE state = 'pending' AND kind = ?1 AND ready_at <= ?2
  AND NOT EXISTS (SELECT 1 FROM task AS busy INDEXED BY task_busy WHERE busy.key = task.key AND busy.state = 'running')
ORDER BY priority, id LIMIT ?3

-- name: next_ready
SELECT min(ready_at) FROM task INDEXED BY task_due
WHERE state = 'pending' AND kind = ?1
  AND NOT EXISTS (SELECT 1 FROM task AS busy INDEXED BY task_busy WHERE busy.key = task.key AND busy.state = 'running')

-- name: claim
UPDATE task SET state = ?2, owner = ?3, lease_until = ?4, fence = fence + 1, started_at = coalesce(started_at, ?5), reason = ''
WHERE id = ?1

-- name: keep
INSERT INTO task (id, key, kind, state, lane_id, turn_id, depth, description, terms, outside, priority, reason, created_at, ended_at, relay,
  expires_at)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)

-- name: keep_after
INSERT INTO task_after (task_id, after_id) SELECT ?1, value FROM carray(?2) WHERE true ON CONFLICT DO NOTHING

-- name: renew
UPDATE task SET lease_until = ?3 WHERE id = ?1 AND fence = ?2 AND state = 'running'

-- name: status
UPDATE task SET status = ?3 WHERE id = ?1 AND fence = ?2 AND state = 'running'

-- name: held
SELECT state FROM task WHERE id = ?1 AND fence = ?2 AND state = 'running'

-- name: end
UPDATE task SET state = ?2, owner = NULL, lease_until = NULL, result = ?3, reason = ?4, attempts = ?5, crashes = ?6,
  ready_at = ?7, deferrals = ?8, deferred_from = ?9, ended_at = ?10, remembered = iif(?2 <> 'completed' OR ?3 = '', 1, 0) WHERE id = ?1

-- name: to_remember
UPDATE task SET remembered = 0 WHERE id = ?

-- name: spent_in_steps
SELECT coalesce(sum(tokens_in), 0), coalesce(sum(tokens_out), 0), sum(cost_micros) FROM step WHERE turn_id = ?

-- name: count_spent
INSERT INTO tally (what, name, n)
SELECT 'usage', 'in', ?2 - tokens_in FROM task WHERE id = ?1
UNION ALL SELECT 'usage', 'out', ?3 - tokens_out FROM task WHERE id = ?1
UNION ALL SELECT 'usage', 'cost', coalesce(?4, 0) - coalesce(cost_micros, 0) FROM task WHERE id = ?1
UNION ALL SELECT 'usage', 'priced', iif(CAST(?4 AS INTEGER) IS NULL, 0, 1) - iif(cost_micros IS NULL, 0, 1) FROM task WHERE id = ?1
ON CONFLICT (what, name) DO UPDATE SET n = tally.n + excluded.n

-- name: spent
UPDATE task SET tokens_in = ?2, tokens_out = ?3, cost_micros = ?4 WHERE id = ?1

-- name: went_on
UPDATE task SET crashes = 0 WHERE id = ? AND crashes > 0

-- name: freed
SELECT id, state FROM task WHERE state = 'blocked' AND id IN (SELECT task_id FROM task_after WHERE after_id = ?1)
  AND NOT EXISTS (
    SELECT 1 FROM task_after LEFT JOIN task AS earlier ON earlier.id = after_id
    WHERE task_after.task_id = task.id AND earlier.state IS DISTINCT FROM 'completed'
  )
ORDER BY id

-- name: waiting
SELECT id, state FROM task WHERE state = 'blocked' AND id IN (SELECT task_id FROM task_after WHERE after_id = ?1) ORDER BY id

-- name: same_call
SELECT 1 FROM task INDEXED BY task_key
WHERE key = ?1 AND kind = 'call' AND state IN ('needs_review', 'pending', 'running') LIMIT 1

-- name: made_by
SELECT id FROM task WHERE turn_id = ?

-- name: waiting_for
SELECT task_id FROM task_after WHERE after_id = ? ORDER BY task_id

-- name: go
UPDATE task SET state = ?2, reason = ?3, ended_at = ?4, owner = NULL, lease_until = NULL, relay = iif(?2 = 'cancelled', 0, relay)
WHERE id = ?1

-- name: soon
UPDATE task SET ready_at = min(ready_at, ?2) WHERE id = ?1 AND state = 'pending'

-- name: all_soon
UPDATE task SET ready_at = ?1 WHERE state = 'pending' AND ready_at > ?1

-- name: anew
UPDATE task SET state = ?2, attempts = 0, crashes = 0, deferrals = 0, deferred_from = NULL, ready_at = ?3, reason = '' WHERE id = ?1

-- name: call_left
SELECT n FROM step WHERE turn_id = ? AND state = 'started' AND repeatable = 0

-- name: forget_call
DELETE FROM step WHERE turn_id = ? AND n = ?

-- name: end_call
UPDATE step SET state = ?3, output = ?4, ended_at = ?5 WHERE turn_id = ?1 AND n = ?2

-- name: overdue
SELECT id FROM task INDEXED BY task_expiring WHERE state = 'needs_review' AND expires_at <= ? ORDER BY id

-- name: next_expiry
SELECT min(expires_at) FROM task INDEXED BY task_expiring WHERE state = 'needs_review' AND expires_at IS NOT NULL

-- name: in_flight
SELECT id FROM task INDEXED BY task_running WHERE state = 'running' AND /*part is_dead*/ ORDER BY id

-- name: owned
SELECT id FROM task INDEXED BY task_running WHERE state = 'running' AND owner = ? ORDER BY id

-- name: expired
SELECT id FROM task INDEXED BY task_running WHERE state = 'running' AND lease_until <= ? ORDER BY id

-- name: crashed
UPDATE task SET state = ?2, owner = NULL, lease_until = NULL, crashes = ?3, reason = ?4, ready_at = ?5, ended_at = ?6 WHERE id = ?1

-- name: back
UPDATE task SET state = ?2, owner = NULL, lease_until = NULL WHERE id = ?1

-- name: steps
SELECT n, kind, subject, input_hash, state, output, tokens_in, tokens_out, cost_micros, repeatable
FROM step WHERE turn_id = ? ORDER BY n

-- name: unremembered
SELECT id FROM task INDEXED BY task_unremembered WHERE remembered = 0 AND NOT EXISTS (
  SELECT 1 FROM batch WHERE batch.task_id = task.id AND /*part incognito*/
) AND NOT EXISTS (
  SELECT 1 FROM turn JOIN batch ON batch.id = turn.batch_id WHERE turn.id = task.turn_id AND /*part incognito*/
) ORDER BY id LIMIT ?

-- name: remembered
UPDATE task SET remembered = 1 WHERE id IN (SELECT value FROM carray(?1)) AND remembered = 0

-- name: messages_of
SELECT id FROM (
  WITH RECURSIVE walk (id, number, previous_id, first) AS (
    SELECT message.id, message.number, message.previous_id, batch.first
    FROM batch JOIN message ON message.id = batch.last_id WHERE batch.task_id = ?1
    /*part back*/
  )
  SELECT id FROM walk
) AS found ORDER BY id LIMIT ?2

-- name: forget_ended
DELETE FROM task WHERE id IN (
  SELECT id FROM task INDEXED BY task_ended WHERE ended_at IS NOT NULL AND ended_at < ?1 AND remembered = 1
    AND NOT EXISTS (
      SELECT 1 FROM task_after JOIN task AS later ON later.id = task_after.task_id
      WHERE task_after.after_id = task.id AND later.ended_at IS NULL
    )
    AND NOT EXISTS (SELECT 1 FROM batch WHERE batch.task_id = task.id AND batch.kept = 1)
  ORDER BY ended_at, id LIMIT ?2
)

-- name: scrub
UPDATE task SET key = '', terms = '{}', description = '', status = '', result = '', reason = '', remembered = 1, relay = 0 WHERE id = ?1

-- name: forget_steps
DELETE FROM step WHERE turn_id = ?

-- name: beside
SELECT /*part task*/ WHERE task.lane_id = (
  SELECT id FROM lane WHERE channel = ?1 AND account = ?2 AND conversation = ?3 AND key = ?4
) AND task.turn_id IS NOT NULL AND task.ended_at IS NULL ORDER BY task.id DESC LIMIT ?5

-- name: ended_beside
SELECT /*part task*/ WHERE task.id IN (
  SELECT id FROM task INDEXED BY task_ended_beside
  WHERE lane_id = (SELECT id FROM lane WHERE channel = ?1 AND account = ?2 AND conversation = ?3 AND key = ?4)
    AND turn_id IS NOT NULL AND ended_at >= ?5 ORDER BY ended_at DESC, id DESC LIMIT ?6
) ORDER BY task.ended_at DESC, task.id DESC

-- name: untold
SELECT id, lane_id FROM task INDEXED BY task_untold WHERE relay = 1 AND ended_at IS NOT NULL ORDER BY id DESC LIMIT ?

-- name: last_said
WITH RECURSIVE back (id, previous_id, sender, n) AS (
  SELECT message.id, message.previous_id, message.sender, 1
  FROM lane JOIN message ON message.id = lane.last_id WHERE lane.id = ?1
  UNION ALL
  SELECT message.id, message.previous_id, message.sender, back.n + 1
  FROM back JOIN message ON message.id = back.previous_id WHERE back.sender = ?2 AND back.n < 1000
)
SELECT message.received_at, message.reply_url, message.direct, message.sender, message.trust FROM back JOIN message ON message.id = back.id
WHERE back.sender <> ?2

-- name: rounds
SELECT count(DISTINCT told_at) FROM task INDEXED BY task_told WHERE lane_id = ?1 AND told_at >= ?2

-- name: tell_back
UPDATE task SET relay = 2, told_at = ?2 WHERE id IN (SELECT value FROM carray(?1)) AND relay = 1

-- name: relay
UPDATE task SET relay = 3 WHERE id = ?1 AND lane_id = ?2 AND relay IN (1, 2)

-- name: answered_by
SELECT id FROM (
  SELECT batch.id, batch.first FROM turn JOIN batch ON batch.id = turn.batch_id WHERE turn.id = ?1
  UNION
  SELECT id, first FROM batch WHERE steered = ?1
) AS found ORDER BY first

-- name: heard_outside
SELECT EXISTS (SELECT 1 FROM message WHERE message.lane_id = turn.lane_id AND message.trust = 'external')
OR EXISTS (SELECT 1 FROM lane WHERE lane.id = turn.lane_id AND lane.external_from IS NOT NULL)
OR EXISTS (
  SELECT 1 FROM transcript AS answer
  JOIN session ON session.id = answer.session_id
  JOIN transcript AS shown ON shown.lane_id = answer.lane_id AND shown.position >= session.first
  WHERE answer.turn_id = turn.id AND shown.role = 'tool'
  AND shown.speaker NOT IN (SELECT value FROM json_each/*texts*/(?2))
)
FROM turn WHERE turn.id = ?1
