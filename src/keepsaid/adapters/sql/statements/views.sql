-- the first of every level of priority
-- name: due
WITH RECURSIVE level (priority) AS (
  SELECT min(priority) FROM lane WHERE due_at IS NOT NULL
  UNION ALL
  SELECT (SELECT min(priority) FROM lane WHERE due_at IS NOT NULL AND lane.priority > level.priority)
  FROM level WHERE level.priority IS NOT NULL
)
SELECT lane.channel, lane.account, lane.conversation, lane.key, lane.batched, lane.head, lane.last_id, lane.oldest_at,
  lane.priority, lane.chars, EXISTS (
    SELECT 1 FROM paused_conversation AS paused WHERE paused.channel = lane.channel AND paused.account = lane.account
    AND paused.conversation = lane.conversation
  )
FROM level CROSS JOIN lane ON lane.id IN (
  SELECT first.id FROM lane AS first
  WHERE first.due_at IS NOT NULL AND first.priority = level.priority AND first.due_at <= ?1
  ORDER BY first.due_at, first.id LIMIT ?2
) ORDER BY lane.priority, lane.due_at, lane.id

-- name: due_levels
WITH RECURSIVE level (priority) AS (
  SELECT min(priority) FROM lane WHERE due_at IS NOT NULL
  UNION ALL
  SELECT (SELECT min(priority) FROM lane WHERE due_at IS NOT NULL AND lane.priority > level.priority)
  FROM level WHERE level.priority IS NOT NULL
)
SELECT priority, (SELECT min(due_at) FROM lane WHERE due_at IS NOT NULL AND lane.priority = level.priority)
FROM level WHERE priority IS NOT NULL

-- name: waiting
WITH RECURSIVE walk (id, number, previous_id, first) AS (
  SELECT message.id, message.number, message.previous_id, lane.batched + 1
  FROM lane JOIN message ON message.id = coalesce(
    (SELECT message_id FROM lane_mark WHERE lane_id = lane.id AND number >= lane.batched + ?5 ORDER BY number LIMIT 1),
    lane.last_id
  )
  WHERE lane.channel = ?1 AND lane.account = ?2 AND lane.conversation = ?3 AND lane.key = ?4
  /*part back*/
)
SELECT /*part message*/
FROM walk JOIN message ON message.id = walk.id JOIN lane ON lane.id = message.lane_id
WHERE walk.number BETWEEN walk.first AND lane.batched + ?5 ORDER BY message.number

-- name: addressed
SELECT message_id FROM addressed WHERE message_id IN (SELECT value FROM carray(?))

-- name: settled_originals
SELECT DISTINCT original.provider_id FROM json_each/*texts*/(?1) AS wanted
CROSS JOIN message AS original ON original.provider_id = wanted.value
JOIN lane ON lane.id = original.lane_id
WHERE lane.channel = ?2 AND lane.account = ?3 AND lane.conversation = ?4 AND (
  SELECT found.last >= original.number AND found.state IN ('done', 'dropped')
  FROM (
    SELECT last, state FROM batch WHERE lane_id = original.lane_id AND first <= original.number ORDER BY first DESC LIMIT 1
  ) AS found
)

-- name: own_replies
SELECT DISTINCT reply.provider_id FROM json_each/*texts*/(?1) AS wanted CROSS JOIN reply ON reply.provider_id = wanted.value
WHERE reply.channel = ?2 AND reply.account = ?3 AND reply.conversation = ?4
UNION
SELECT reply_part.provider_id FROM json_each/*texts*/(?1) AS wanted CROSS JOIN reply_part ON reply_part.provider_id = wanted.value
JOIN reply ON reply.id = reply_part.reply_id
WHERE reply.channel = ?2 AND reply.account = ?3 AND reply.conversation = ?4

-- name: next_ready
SELECT iif(
  EXISTS (SELECT 1 FROM ready WHERE later = 0 AND suspect BETWEEN 0 AND 2), 0, (SELECT min(ready_at) FROM ready WHERE later = 1)
)

-- name: next_trial
SELECT min(trial_after_ms) FROM ready INDEXED BY ready_next JOIN batch ON batch.id = ready.batch_id
WHERE ready.later = 0 AND ready.suspect = 2

-- name: batch_of
SELECT id FROM (SELECT id, last FROM batch WHERE lane_id = ?1 AND first <= ?2 ORDER BY first DESC LIMIT 1) AS found WHERE last >= ?2

-- name: lane_of_message
SELECT lane_id, number FROM message WHERE id = ?

-- name: turn_of_batch
SELECT coalesce((SELECT steered FROM batch WHERE id = ?1), (SELECT max(id) FROM turn WHERE batch_id = ?1))

-- name: reason_of_turn
SELECT reason FROM turn WHERE id = ? AND state = 'committed'

-- name: task
SELECT id, state, description FROM task WHERE id = ?

-- name: replies_of_batch
SELECT /*part reply*/
FROM reply JOIN lane ON lane.id = reply.lane_id WHERE reply.id IN (
  SELECT id FROM reply WHERE batch_id = ?1
  UNION ALL
  SELECT id FROM reply WHERE turn_id = (SELECT steered FROM batch WHERE id = ?1)
) ORDER BY reply.id

-- name: find
SELECT message.id FROM message JOIN lane ON lane.id = message.lane_id
WHERE (CAST(?1 AS TEXT) IS NULL OR lane.channel = ?1) AND (CAST(?2 AS TEXT) IS NULL OR lane.conversation = ?2)
  AND (CAST(?3 AS TEXT) IS NULL OR ?3 = coalesce((
    SELECT CASE WHEN batch.state IN ('done', 'dropped', 'review', 'dead') THEN batch.state ELSE 'batched' END
    FROM batch WHERE batch.lane_id = message.lane_id AND batch.first <= message.number AND batch.last >= message.number
    ORDER BY batch.first DESC LIMIT 1
  ), 'received'))
  AND (CAST(?5 AS TEXT) IS NULL OR ?5 IN (SELECT reply.state FROM reply WHERE reply.batch_id = (
    SELECT coalesce((SELECT turn.batch_id FROM turn WHERE turn.id = batch.steered), batch.id) FROM batch
    WHERE batch.lane_id = message.lane_id AND batch.first <= message.number AND batch.last >= message.number
    ORDER BY batch.first DESC LIMIT 1
  )))
ORDER BY message.id DESC LIMIT ?4

-- name: tally
SELECT what, name, n FROM tally WHERE what <> 'task'
UNION ALL
SELECT 'batch', 'leased', (SELECT count(*) FROM batch WHERE state = 'leased')
UNION ALL
SELECT 'batch', 'queued', (SELECT count(*) FROM batch WHERE state IN ('queued', 'leased'))
  - (SELECT count(*) FROM batch WHERE state = 'leased')
UNION ALL
SELECT 'reply', state, count(*) FROM reply WHERE state IN ('pending', 'sending', 'unknown') GROUP BY state
UNION ALL
SELECT 'turn', 'open', count(*) FROM turn WHERE state = 'open'

-- name: received
SELECT name, n FROM tally WHERE what = 'heard'

-- name: lost
SELECT coalesce((
  SELECT sum(gap) FROM (
    SELECT tally.n - coalesce(counted.n, 0) AS gap
    FROM tally LEFT JOIN (SELECT channel, sum(head) AS n FROM lane GROUP BY channel) AS counted ON counted.channel = tally.name
    WHERE tally.what = 'heard'
  ) AS gaps WHERE gap > 0
), 0) + (
  SELECT count(*) FROM (
    SELECT last_id FROM batch WHERE state IN ('queued', 'leased') ORDER BY lane_id, first LIMIT ?1
  ) AS open WHERE NOT EXISTS (SELECT 1 FROM message WHERE message.id = open.last_id)
) + (
  SELECT count(*) FROM (
    SELECT last_id FROM lane WHERE due_at IS NOT NULL ORDER BY priority, due_at LIMIT ?1
  ) AS waiting WHERE NOT EXISTS (SELECT 1 FROM message WHERE message.id = waiting.last_id)
)

-- name: oldest
SELECT min(oldest_at) FROM lane WHERE oldest_at IS NOT NULL AND channel = ?

-- name: depths
SELECT lane.channel, open.state, sum(open.n), min(open.first_at) FROM (
  SELECT lane_id, state, sum(last - first + 1) AS n, min(first_at) AS first_at
  FROM batch WHERE state IN ('queued', 'leased') GROUP BY lane_id, state
) AS open JOIN lane ON lane.id = open.lane_id GROUP BY lane.channel, open.state
UNION ALL
SELECT lane.channel, state, sum(last - first + 1), min(first_at)
FROM batch INDEXED BY batch_for_person JOIN lane ON lane.id = batch.lane_id
WHERE state IN ('review', 'dead') GROUP BY lane.channel, state

-- name: tasks
SELECT name, n FROM tally WHERE what = 'task' AND n > 0
UNION ALL
SELECT state, count(*) FROM task INDEXED BY task_state
WHERE state IN ('blocked', 'pending', 'running', 'needs_review') GROUP BY state

-- name: totals
SELECT (SELECT count(*) FROM episode_due), count(iif(deferrals > 0, 1, NULL)), count(iif(crashes >= ?1, 1, NULL)),
  coalesce(min(iif(crashes >= ?1, id, NULL)), 0)
FROM batch WHERE state IN ('queued', 'leased') AND state = 'queued'

-- name: work
SELECT episode_due.batch_id, episode_due.turn_id
FROM episode_due JOIN lane ON lane.id = episode_due.lane_id
WHERE CAST(?1 AS TEXT) IS NULL OR lane.conversation = ?1 ORDER BY episode_due.batch_id LIMIT ?2

-- name: answer
SELECT transcript.text, transcript.created_at, turn.model, transcript.trust, EXISTS (
  SELECT 1 FROM message
  WHERE message.lane_id = batch.lane_id AND message.number <= max(
    batch.last, coalesce((SELECT max(last) FROM batch AS joined WHERE joined.steered = ?1), 0)
  ) AND message.trust = 'external'
) OR EXISTS (SELECT 1 FROM lane WHERE lane.id = batch.lane_id AND lane.external_from <= batch.last)
OR EXISTS (
  SELECT 1 FROM session JOIN transcript AS shown
    ON shown.lane_id = transcript.lane_id AND shown.position BETWEEN session.first AND transcript.position
  WHERE session.id = transcript.session_id AND shown.role = 'tool'
  AND shown.speaker NOT IN (SELECT value FROM json_each/*texts*/(?2))
)
FROM transcript JOIN turn ON turn.id = transcript.turn_id JOIN batch ON batch.id = turn.batch_id
WHERE transcript.turn_id = ?1 AND transcript.ref = 'reply:' || ?1

-- name: used
SELECT memory_id FROM injection WHERE turn_id = ?1 ORDER BY rank

-- name: steered
SELECT id FROM batch WHERE steered = ? ORDER BY first

-- name: records
SELECT role, text, calls, call_id, speaker, attached FROM transcript WHERE turn_id = ? ORDER BY position

-- name: lease
SELECT batch.state, batch.alone, turn.id FROM batch LEFT JOIN turn ON turn.batch_id = batch.id AND turn.state = 'open'
WHERE batch.id = ?1 AND batch.fence = ?2

-- name: expired
SELECT id, fence FROM batch INDEXED BY batch_leased WHERE state = 'leased' AND lease_until <= ? ORDER BY id LIMIT ?

-- name: turn
SELECT batch_id, state, reason, tokens_in, tokens_out, cost_micros, started_at, ended_at FROM turn WHERE id = ?

-- name: last_turn
SELECT id FROM turn
WHERE state <> 'open' AND (?1 = 1 OR state <> 'committed' OR EXISTS (SELECT 1 FROM trace WHERE trace.turn_id = turn.id))
ORDER BY id DESC LIMIT 1

-- name: last_turn_of_lane
SELECT id FROM turn
WHERE state <> 'open' AND lane_id = ?2
  AND (?1 = 1 OR state <> 'committed' OR EXISTS (SELECT 1 FROM trace WHERE trace.turn_id = turn.id))
ORDER BY id DESC LIMIT 1

-- name: turn_before
SELECT id FROM turn WHERE lane_id = (SELECT lane_id FROM turn WHERE id = ?1) AND id < ?1 AND state = 'committed'
ORDER BY id DESC LIMIT 1

-- name: unfetched
SELECT count(*), min(created_at) FROM reply INDEXED BY reply_waiting
WHERE state IN ('pending', 'sending', 'unknown') AND state = 'pending' AND created_at < ?

-- name: unseen
SELECT /*part reply*/
FROM reply JOIN lane ON lane.id = reply.lane_id
WHERE reply.state IN ('pending', 'sending', 'unknown') AND reply.state = 'pending' AND reply.url IS NULL AND reply.channel = ?1 AND reply.conversation = ?2 ORDER BY reply.id LIMIT ?3

-- name: last_id
SELECT max(
  (SELECT coalesce(max(id), 0) FROM message), (SELECT coalesce(max(id), 0) FROM batch),
  (SELECT coalesce(max(id), 0) FROM reply), (SELECT coalesce(max(id), 0) FROM task)
)

-- name: next_send
SELECT min(next_at) FROM (
  SELECT * FROM (
    SELECT next_at FROM reply AS first
    WHERE state IN ('pending', 'unknown') AND url IS NOT NULL AND NOT EXISTS (
      /*part before_it*/
        AND (earlier.url IS NOT NULL OR earlier.channel IN (SELECT value FROM json_each/*texts*/(?1)))
    )
    ORDER BY next_at LIMIT 1
  ) AS found
  UNION ALL
  SELECT * FROM (
    SELECT next_at FROM reply AS first
    WHERE state IN ('pending', 'unknown') AND channel IN (SELECT value FROM json_each/*texts*/(?1)) AND NOT EXISTS (
      /*part before_it*/
    )
    ORDER BY next_at LIMIT 1
  ) AS found
) AS found

-- name: placed
SELECT message_id, reason FROM placed WHERE message_id IN (SELECT value FROM carray(?))
