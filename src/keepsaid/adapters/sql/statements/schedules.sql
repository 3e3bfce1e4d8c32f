-- name: add
INSERT INTO schedule (
  id, source, name, what, timing, text, channel, account, conversation, key, url, direct, trust, urgent, whenever,
  state, next_at, created_at, turn_id
) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)

-- name: made_by
SELECT id FROM schedule WHERE turn_id = ?

-- name: words_of
SELECT state FROM schedule WHERE id = ? AND text <> ''

-- name: asked_by
SELECT message_id FROM schedule_run WHERE schedule_id = ? AND message_id IS NOT NULL

-- name: scrub
UPDATE schedule SET name = '', text = '', reason = '', url = NULL WHERE id = ?

-- name: scrub_runs
UPDATE schedule_run SET reason = '', url = NULL WHERE schedule_id = ?

-- name: taken
SELECT 1 FROM schedule WHERE id = ?1
UNION ALL
SELECT 1 FROM schedule INDEXED BY schedule_named
WHERE source = ?2 AND name = ?3 AND name <> '' AND state IN ('active', 'paused', 'disabled')

-- name: of_source
SELECT /*part schedule*/ FROM schedule INDEXED BY schedule_live
WHERE source = ?1 AND state IN ('active', 'paused', 'disabled') ORDER BY id

-- name: change
UPDATE schedule SET what = ?2, timing = ?3, text = ?4, channel = ?5, account = ?6, conversation = ?7, key = ?8, url = ?9,
  direct = ?10, trust = ?11, urgent = ?12, whenever = ?13, state = ?14, next_at = ?15, failures = 0, reason = ''
WHERE id = ?1

-- name: stand
SELECT state, failures, next_at FROM schedule WHERE id = ?

-- name: one
SELECT /*part schedule*/ FROM schedule WHERE id = ?

-- name: due
SELECT /*part schedule*/ FROM schedule INDEXED BY schedule_due
WHERE state = 'active' AND next_at <= ?1 AND (?3 = 1 OR timing NOT LIKE 'once %') ORDER BY next_at, id LIMIT ?2

-- name: next_due
SELECT min(at) FROM (
  SELECT min(next_at) AS at FROM schedule INDEXED BY schedule_due WHERE state = 'active' AND next_at IS NOT NULL
  UNION ALL
  SELECT min(ready_at) FROM schedule_run INDEXED BY run_due WHERE state = 'due' AND errand = 0
  UNION ALL
  SELECT min(ready_at) FROM schedule_run INDEXED BY run_due WHERE state = 'due' AND errand = 1
) AS found

-- name: list
SELECT /*part schedule*/ FROM schedule
WHERE id > ?2 AND state IN (SELECT value FROM json_each/*texts*/(?1)) ORDER BY id LIMIT ?3

-- name: move_on
UPDATE schedule SET next_at = ?2, state = ?3 WHERE id = ?1

-- name: stands
UPDATE schedule SET state = ?2, failures = ?3, reason = ?4 WHERE id = ?1

-- name: resume
UPDATE schedule SET state = ?2, next_at = ?3, failures = 0, reason = '' WHERE id = ?1

-- name: task_open
SELECT 1 FROM task INDEXED BY task_key WHERE key = ? AND ended_at IS NULL LIMIT 1

-- name: keep_run
INSERT INTO schedule_run (
  schedule_id, due_at, errand, state, ready_at, channel, account, conversation, key, url, direct, reason, fired_at,
  ended_at
)
SELECT id, ?2, iif(what = 'run', 1, 0), ?3, ?4, channel, account, conversation, key, url, direct, ?5, ?6, ?7 FROM schedule
WHERE id = ?1
ON CONFLICT DO NOTHING

-- name: under_way
SELECT 1 FROM schedule_run INDEXED BY run_under_way
WHERE schedule_id = ? AND (state IN ('due', 'running') OR output = 'asked') LIMIT 1

-- name: run
SELECT /*part run*/ FROM schedule_run WHERE schedule_id = ? AND due_at = ?

-- name: known
SELECT 1 FROM schedule_run WHERE schedule_id = ? AND due_at = ?

-- name: runs
SELECT /*part run*/ FROM schedule_run WHERE schedule_id = ? ORDER BY due_at DESC LIMIT ?

-- name: ready
SELECT /*part run*/ FROM schedule_run INDEXED BY run_due
WHERE state = 'due' AND errand = ?2 AND ready_at <= ?1 ORDER BY ready_at, schedule_id, due_at LIMIT ?3

-- name: latest
SELECT max(fired_at) FROM schedule_run INDEXED BY run_fired

-- name: move_run
UPDATE schedule_run SET state = ?3, reason = ?4, ended_at = ?5 WHERE schedule_id = ?1 AND due_at = ?2

-- name: hear
UPDATE schedule_run SET output = ?3, message_id = coalesce(message_id, ?4), reply_id = coalesce(reply_id, ?5),
  reason = iif(?6 = '', reason, ?6)
WHERE schedule_id = ?1 AND due_at = ?2

-- name: waiting_runs
SELECT due_at FROM schedule_run INDEXED BY run_under_way
WHERE schedule_id = ? AND (state IN ('due', 'running') OR output = 'asked') AND state = 'due' ORDER BY due_at

-- name: running
SELECT schedule_run.schedule_id, due_at, what, text FROM schedule_run INDEXED BY run_under_way
JOIN schedule ON schedule.id = schedule_run.schedule_id
WHERE (schedule_run.state IN ('due', 'running') OR output = 'asked') AND schedule_run.state = 'running'
  AND task_id IS NULL

-- name: set_about
UPDATE schedule_run SET task_id = ?3 WHERE schedule_id = ?1 AND due_at = ?2

-- name: asker
SELECT turn_id FROM schedule WHERE id = ?

-- name: worked
SELECT /*part run*/ FROM schedule_run INDEXED BY run_under_way
WHERE (state IN ('due', 'running') OR output = 'asked') AND state = 'running' AND task_id IS NOT NULL
  AND NOT EXISTS (SELECT 1 FROM task WHERE task.id = task_id AND task.ended_at IS NULL)
LIMIT ?

-- name: heard
SELECT run.schedule_id, run.due_at, run.output,
  iif(message.id IS NULL, '', coalesce(batch.state, 'received')),
  iif(batch.id IS NULL, '', iif(batch.error <> '', batch.error, batch.reason)),
  reply.id, coalesce(reply.state, ''), coalesce(reply.detail, '')
FROM schedule_run AS run INDEXED BY run_heard
LEFT JOIN message ON message.id = run.message_id
LEFT JOIN batch ON batch.id = (
  SELECT held.id FROM batch AS held WHERE held.lane_id = message.lane_id AND held.first <= message.number
  ORDER BY held.first DESC LIMIT 1
) AND batch.last >= message.number
LEFT JOIN reply ON reply.id = coalesce(run.reply_id, iif(batch.state = 'done', (
  SELECT min(made.id) FROM reply AS made WHERE made.notice = 0 AND made.id IN (
    SELECT id FROM reply WHERE batch_id = batch.id
    UNION ALL
    SELECT id FROM reply WHERE turn_id = batch.steered
  )
), NULL))
WHERE run.output IN ('asked', 'waiting') AND (
  (run.output = 'asked' AND coalesce(batch.state, iif(message.id IS NULL, 'done', '')) IN ('done', 'dead', 'dropped'))
  OR reply.state IN ('sent', 'dead', 'not_deliverable')
)
LIMIT ?

-- name: place_lane
INSERT INTO lane (channel, account, conversation, key) VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING

-- name: post
UPDATE reply SET posted_after = (SELECT transcript FROM lane WHERE lane.id = reply.lane_id),
  trust = coalesce((SELECT trust FROM schedule WHERE schedule.id = ?2), '')
WHERE id = ?1

-- name: posted_by
SELECT reply.id, reply.state, NULL, reply.attempts
FROM schedule_run JOIN reply ON reply.id = schedule_run.reply_id
WHERE schedule_run.schedule_id = ? AND reply.posted_after IS NOT NULL AND reply.text <> ''

-- name: lane_id
SELECT id FROM lane WHERE channel = ? AND account = ? AND conversation = ? AND key = ?

-- name: old_runs
SELECT schedule_id, due_at, reply_id FROM schedule_run INDEXED BY run_fired
WHERE fired_at < ?1 AND state NOT IN ('due', 'running') AND output NOT IN ('asked', 'waiting')
ORDER BY fired_at LIMIT ?2

-- name: forget_run
DELETE FROM schedule_run WHERE schedule_id = ? AND due_at = ?

-- name: forget_post
DELETE FROM reply WHERE id = ? AND batch_id IS NULL

-- name: forget_schedules
DELETE FROM schedule WHERE id IN (
  SELECT id FROM schedule INDEXED BY schedule_over
  WHERE state IN ('done', 'cancelled') AND created_at < ?1
    AND NOT EXISTS (SELECT 1 FROM schedule_run WHERE schedule_run.schedule_id = schedule.id)
  LIMIT ?2
)
