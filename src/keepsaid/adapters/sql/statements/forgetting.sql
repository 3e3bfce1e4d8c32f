-- name: request
INSERT INTO forgetting (id, state, how, given_by, requested_at, changed_at, undo_until)
VALUES (?1, 'requested', ?2, ?3, ?4, ?4, ?5) ON CONFLICT DO NOTHING

-- name: keep_item
INSERT INTO forgetting_item (forgetting_id, kind, ref) VALUES (?, ?, ?) ON CONFLICT DO NOTHING

-- name: bury
INSERT INTO tombstone (hash, created_at) VALUES (?, ?) ON CONFLICT DO NOTHING

-- name: row
SELECT id, state, how, given_by, requested_at, changed_at, counts, undo_until FROM forgetting WHERE id = ?

-- name: newest
SELECT id, state, how, given_by, requested_at, changed_at, counts, undo_until FROM forgetting ORDER BY id DESC LIMIT ?

-- name: unfinished
SELECT id, state, how, given_by, requested_at, changed_at, counts, undo_until FROM forgetting WHERE state NOT IN ('done', 'undone') ORDER BY id

-- name: undoable
SELECT id, state, how, given_by, requested_at, changed_at, counts, undo_until FROM forgetting
WHERE undo_until IS NOT NULL ORDER BY undo_until

-- name: keep_aside
INSERT INTO forgotten_aside (forgetting_id, images) VALUES (?, ?)

-- name: aside
SELECT images FROM forgotten_aside WHERE forgetting_id = ? ORDER BY n DESC

-- name: drop_aside
DELETE FROM forgotten_aside WHERE forgetting_id = ?

-- name: for_good
UPDATE forgetting SET undo_until = NULL WHERE id = ?1 AND undo_until IS NOT NULL

-- name: items
SELECT kind, ref FROM forgetting_item WHERE forgetting_id = ?

-- name: open_items
SELECT ref FROM forgetting_item WHERE forgetting_id = ?1 AND kind = ?2 AND done = 0 LIMIT ?3

-- name: open_count
SELECT count(*) FROM forgetting_item
WHERE forgetting_id = ?1 AND done = 0 AND kind IN ('memory', 'message', 'turn', 'trace', 'task', 'schedule')

-- name: item_done
UPDATE forgetting_item SET done = 1 WHERE forgetting_id = ?1 AND kind = ?2
  AND CAST(ref AS TEXT) IN (SELECT CAST(value AS TEXT) FROM carray(?3))

-- name: move
UPDATE forgetting SET state = ?2, changed_at = ?3 WHERE id = ?1

-- name: count
UPDATE forgetting SET counts = ?2, changed_at = ?3 WHERE id = ?1

-- name: forget_items
DELETE FROM forgetting_item WHERE forgetting_id = ?

-- name: tombstones
SELECT hash FROM tombstone ORDER BY hash

-- name: buried
SELECT hash FROM tombstone WHERE hash = ?

-- name: empty_message
UPDATE message SET text = '', payload = CAST('' AS BLOB), forgotten_at = ?2 WHERE id = ?1 AND forgotten_at IS NULL

-- who said it, and the names by which its provider knows it; the hashes that tell a redelivery stay
-- name: unname_message
UPDATE message SET sender = 'forgotten', sender_name = '', external_id = NULL, provider_id = NULL, reply_to = NULL,
  topic = NULL, reply_url = NULL
WHERE id = ?1

-- name: forget_marks
DELETE FROM redaction WHERE message_id = ?

-- name: forget_client_calls
DELETE FROM note WHERE name = 'client-call:' || ?1
  OR (name >= 'client-result:' || ?1 || ':' AND name < 'client-result:' || ?1 || ';')

-- name: forget_placing
DELETE FROM placed WHERE message_id = ?

-- name: forget_manner
DELETE FROM personality WHERE scope = ?

-- name: manners
SELECT scope, text FROM personality

-- name: forget_notes
DELETE FROM note WHERE instr(name, ?1) > 0 OR instr(text, ?1) > 0

-- name: forget_note
DELETE FROM note WHERE name = ?

-- name: conversation_names
SELECT name, text FROM note WHERE name >= 'conversation|' AND name < 'conversation}'

-- name: place
SELECT lane_id, number FROM message WHERE id = ?

-- name: batch_holding
SELECT id, state, steered, task_id FROM (
  SELECT id, state, steered, task_id, last FROM batch WHERE lane_id = ?1 AND first <= ?2 ORDER BY first DESC LIMIT 1
) AS found WHERE last >= ?2

-- name: all_forgotten
WITH RECURSIVE /*part of_batch*/
SELECT NOT EXISTS (SELECT 1 FROM walk JOIN message ON message.id = walk.id WHERE message.forgotten_at IS NULL)

-- name: empty_batch
UPDATE batch SET error = '' WHERE id = ?

-- name: positions_of
SELECT lane_id, position FROM transcript WHERE ref = ? AND ref <> '' ORDER BY lane_id, position

-- name: positions_of_turn
SELECT lane_id, position FROM transcript WHERE turn_id = ? AND role <> 'user'

-- name: empty_record
UPDATE transcript SET speaker = '', sender = '', text = '', attached = '', calls = '', call_id = '', unprompted = 1
WHERE lane_id = ?1 AND position = ?2 AND (unprompted = 0 OR /*part record_holds*/)

-- name: record_count
SELECT count(*) FROM transcript WHERE lane_id = ?1 AND position IN (SELECT value FROM carray(?2))
AND (unprompted = 0 OR /*part record_holds*/)

-- name: reply_holds
SELECT count(*) FROM reply
WHERE id = ? AND (text <> '' OR detail <> '' OR url IS NOT NULL OR reply_to IS NOT NULL OR provider_id IS NOT NULL)

-- name: summary_count
SELECT count(*) FROM lane_summary WHERE lane_id = ?1 AND version >= (
  SELECT min(version) FROM lane_summary WHERE lane_id = ?1 AND last >= ?2
)

-- in order: messages, turns, turns and traces, memories, tasks, schedules
-- name: totals
SELECT
  (SELECT count(*) FROM message WHERE forgotten_at IS NULL AND id IN (SELECT value FROM carray(?1))),
  (SELECT count(*) FROM staged_memory WHERE turn_id IN (SELECT value FROM carray(?2))),
  (SELECT count(*) FROM step WHERE turn_id IN (SELECT value FROM carray(?3))),
  (SELECT count(*) FROM trace WHERE turn_id IN (SELECT value FROM carray(?3))),
  (SELECT count(*) FROM injection WHERE memory_id IN (SELECT value FROM carray(?4))),
  (SELECT count(*) FROM task WHERE description <> '' AND id IN (SELECT value FROM carray(?5))),
  (SELECT count(*) FROM schedule WHERE text <> '' AND id IN (SELECT value FROM carray(?6)))

-- name: turn_state
SELECT state FROM turn WHERE id = ?

-- name: empty_turn
UPDATE turn SET reason = '' WHERE id = ?

-- name: forget_steps
DELETE FROM step WHERE turn_id = ?

-- name: forget_trace
DELETE FROM trace WHERE turn_id = ?

-- name: forget_injections
DELETE FROM injection WHERE memory_id = ?

-- name: forget_feedback
DELETE FROM feedback WHERE memory_id = ?

-- name: replies_of
SELECT id, state, batch_id, attempts FROM reply WHERE turn_id = ?

-- name: notices_of_made
SELECT id, state, batch_id, attempts FROM reply INDEXED BY reply_about
WHERE about_task IN (SELECT id FROM task WHERE turn_id = ?)

-- name: empty_reply
UPDATE reply SET text = '', detail = '', url = NULL, reply_to = NULL, provider_id = NULL, state = ?2,
  ended_at = coalesce(ended_at, ?3), owner = NULL WHERE id = ?1

-- name: empty_moves
UPDATE reply_move SET detail = '' WHERE reply_id = ?

-- name: empty_question
UPDATE slot SET person = '', anchor = '', question = '', options = '[]', value = '', state = iif(state = 'open', 'cleared', state),
  reason = iif(state = 'open', 'forgotten', reason), ended_at = coalesce(ended_at, ?2)
WHERE id = ?1

-- name: empty_answers
UPDATE slot SET value = '' WHERE lane_id = ?1 AND filled_by = ?2

-- name: summary_over
SELECT min(version) FROM lane_summary WHERE lane_id = ?1 AND last >= ?2

-- name: forget_summaries
DELETE FROM lane_summary WHERE lane_id = ?1 AND version >= ?2

-- name: summary_before
SELECT version, last FROM lane_summary WHERE lane_id = ?1 ORDER BY version DESC LIMIT 1

-- name: reset_until
SELECT coalesce(max(last), 0) FROM lane_cut WHERE lane_id = ?1 AND reason = 'reset'

-- name: begin_summary_anew
INSERT INTO lane_context (lane_id, version, summarised_until, floor, left_out, summary, changed_at)
VALUES (?1, 1, ?2, ?3, 0, ?4, ?5)
ON CONFLICT (lane_id) DO UPDATE SET version = lane_context.version + 1, summarised_until = ?2, floor = min(lane_context.floor, ?3),
  summary = ?4, changed_at = ?5, attempts = 0, next_at = NULL, error = ''

-- name: seen_anew
INSERT INTO lane_context (lane_id, version, changed_at) VALUES (?1, 1, ?2)
ON CONFLICT (lane_id) DO UPDATE SET version = lane_context.version + 1, changed_at = ?2, error = ''

-- name: forget_copy
DELETE FROM summary_due WHERE lane_id = ?

-- name: findings_over
SELECT id, statements FROM finding WHERE lane_id = ?1 AND first <= ?2 AND last >= ?2 ORDER BY id

-- name: change_finding
UPDATE finding SET statements = ?2 WHERE id = ?1

-- name: turns_answering
SELECT DISTINCT turn_id FROM transcript WHERE ref = ?1 AND ref <> ''
UNION
SELECT turn.id FROM turn WHERE turn.batch_id = ?2
UNION
SELECT steered FROM batch WHERE id = ?2 AND steered IS NOT NULL

-- name: said_in
SELECT text FROM message WHERE id = ?1 AND forgotten_at IS NULL
UNION ALL
SELECT text FROM transcript WHERE ref = 'message:' || ?1 AND ref <> ''

-- name: spoken_in
SELECT lane.channel, lane.account, sender, trust, text
FROM message JOIN lane ON lane.id = message.lane_id WHERE message.id = ?1 AND forgotten_at IS NULL

-- name: lanes_of_message
SELECT lane_id FROM message WHERE id = ?1 UNION SELECT lane_id FROM transcript WHERE ref = 'message:' || ?1 AND ref <> ''

-- name: lanes_of_turn
SELECT lane_id FROM turn WHERE id = ?1 UNION SELECT lane_id FROM transcript WHERE turn_id = ?1

-- name: lanes_of_conversation
SELECT id FROM lane WHERE conversation = ? ORDER BY id

-- name: lane_names
SELECT channel, account, conversation, key FROM lane WHERE id IN (SELECT value FROM carray(?))

-- name: refs_of_lane
SELECT DISTINCT ref FROM transcript WHERE lane_id = ? AND (text <> '' OR attached <> '')

-- name: messages_of_lane
SELECT id FROM message WHERE lane_id = ? AND forgotten_at IS NULL ORDER BY id

-- name: all_messages
SELECT message.id, lane.channel, lane.account, sender, trust, text
FROM message JOIN lane ON lane.id = message.lane_id WHERE forgotten_at IS NULL ORDER BY message.id

-- name: all_said
SELECT ref, text FROM transcript WHERE role = 'user' AND ref <> '' ORDER BY lane_id, position

-- name: all_traces
SELECT trace.turn_id, body, turn.lane_id FROM trace JOIN turn ON turn.id = trace.turn_id ORDER BY trace.turn_id

-- name: shown_to
SELECT turn_id FROM injection WHERE memory_id = ?

-- name: all_steps
SELECT step.turn_id, coalesce(output, ''), turn.lane_id FROM step JOIN turn ON turn.id = step.turn_id ORDER BY step.turn_id, step.n

-- name: all_quoting
SELECT id, payload FROM message
WHERE forgotten_at IS NULL AND length(payload) <= 64000
  AND (instr(payload, CAST('"reply_to_' AS BLOB)) > 0 OR instr(payload, CAST('"external_reply"' AS BLOB)) > 0) ORDER BY id

-- name: all_records
SELECT turn_id, text || ' ' || calls, lane_id FROM transcript WHERE role <> 'user' ORDER BY lane_id, position

-- name: all_replies
SELECT turn_id, text, lane_id FROM reply WHERE turn_id IS NOT NULL ORDER BY id

-- name: all_task_words
SELECT id, key || ' ' || description || ' ' || status || ' ' || result || ' ' || reason FROM task ORDER BY id

-- name: all_worded_tasks
SELECT id FROM task WHERE description <> ''

-- name: all_worded_schedules
SELECT id FROM schedule WHERE text <> '' AND source IN ('agent', 'command')

-- name: all_schedule_words
SELECT id, name || ' ' || text || ' ' || reason FROM schedule WHERE source IN ('agent', 'command') ORDER BY id

-- name: schedules_of_conversation
SELECT id FROM schedule WHERE conversation = ? AND source IN ('agent', 'command') ORDER BY id

-- name: tasks_of
SELECT id FROM task WHERE turn_id IN (SELECT value FROM carray(?2))
UNION
SELECT held.task_id FROM carray(?1) AS wanted CROSS JOIN message ON message.id = wanted.value
CROSS JOIN batch AS held ON held.id = (
  SELECT id FROM batch WHERE batch.lane_id = message.lane_id AND batch.first <= message.number
  ORDER BY batch.first DESC LIMIT 1
)
WHERE held.last >= message.number AND held.task_id IS NOT NULL

-- name: schedules_of
SELECT id FROM schedule WHERE turn_id IN (SELECT value FROM carray(?))

-- name: asked_by_schedules
SELECT message_id FROM schedule_run
WHERE schedule_id IN (SELECT value FROM carray(?)) AND message_id IS NOT NULL

-- name: results_after
SELECT id, external_id FROM message WHERE id > ? AND event = 'task.result' AND external_id IS NOT NULL ORDER BY id

-- name: notices_of
SELECT id, state, NULL, attempts FROM reply INDEXED BY reply_unasked
WHERE turn_id IS NULL AND notice = 1 AND text <> '' AND instr(text, ?1) > 0

-- name: replies_about
SELECT id, state, NULL, attempts FROM reply INDEXED BY reply_about WHERE about_task = ?

-- name: turns_at_work
SELECT count(*) FROM turn JOIN batch ON batch.id = turn.batch_id
WHERE turn.state = 'open' AND turn.started_at <= ?1
  AND (batch.state = 'leased' OR turn.lane_id IN (SELECT value FROM carray(?2)))

-- name: lanes_of_request
SELECT message.lane_id FROM forgetting_item CROSS JOIN message ON message.id = CAST(forgetting_item.ref AS INTEGER)
WHERE forgetting_id = ?1 AND forgetting_item.kind = 'message'
UNION
SELECT turn.lane_id FROM forgetting_item CROSS JOIN turn ON turn.id = CAST(forgetting_item.ref AS INTEGER)
WHERE forgetting_id = ?1 AND forgetting_item.kind = 'turn'
UNION
SELECT CAST(ref AS INTEGER) FROM forgetting_item WHERE forgetting_id = ?1 AND kind = 'lane'

-- name: beside_of_lane
SELECT other.id, other.channel, other.account, other.conversation, other.key
FROM lane JOIN lane AS other USING (channel, account, conversation)
WHERE lane.id = ?1 AND other.key <> 'forgotten:' || other.id ORDER BY other.id

-- anything in a lane that is said there, waits, is at work or comes later
-- name: life_of_lane
WITH RECURSIVE back (id, previous_id, forgotten_at) AS (
  SELECT message.id, message.previous_id, message.forgotten_at
  FROM lane JOIN message ON message.id = lane.last_id WHERE lane.id = ?1
  UNION ALL
  SELECT message.id, message.previous_id, message.forgotten_at
  FROM back JOIN message ON message.id = back.previous_id WHERE back.forgotten_at IS NOT NULL
)
SELECT 1 FROM back WHERE forgotten_at IS NULL
UNION ALL
SELECT 1 FROM forgetting_item WHERE kind = 'lane' AND CAST(ref AS TEXT) = CAST(?1 AS TEXT)
UNION ALL
SELECT 1 FROM lane WHERE id = ?1 AND batched < head
UNION ALL
SELECT 1 FROM batch WHERE lane_id = ?1 AND state IN ('queued', 'leased')
UNION ALL
SELECT 1 FROM turn WHERE lane_id = ?1 AND state = 'open'
UNION ALL
SELECT 1 FROM transcript WHERE lane_id = ?1 AND (text <> '' OR attached <> '' OR calls <> '')
UNION ALL
SELECT 1 FROM reply WHERE lane_id = ?1 AND state IN ('pending', 'sending', 'unknown')
UNION ALL
SELECT 1 FROM task WHERE lane_id = ?1 AND state IN ('blocked', 'pending', 'running', 'needs_review')
UNION ALL
SELECT 1 FROM lane JOIN schedule USING (channel, account, conversation, key)
WHERE lane.id = ?1 AND state IN ('active', 'paused', 'disabled')
UNION ALL
SELECT 1 FROM lane JOIN schedule_run USING (channel, account, conversation, key)
WHERE lane.id = ?1 AND (state IN ('due', 'running') OR output IN ('asked', 'waiting'))
LIMIT 1

-- name: unname_lane
UPDATE lane SET conversation = ?2, key = 'forgotten:' || id WHERE id = ?1

-- name: unname_replies_of_lane
UPDATE reply SET conversation = ?2 WHERE lane_id = ?1

-- name: unname_schedules_of_lane
UPDATE schedule SET conversation = ?5, key = ?6 WHERE channel = ?1 AND account = ?2 AND conversation = ?3 AND key = ?4

-- name: unname_runs_of_lane
UPDATE schedule_run SET conversation = ?5, key = ?6 WHERE channel = ?1 AND account = ?2 AND conversation = ?3 AND key = ?4

-- name: forget_lane_items
DELETE FROM forgetting_item WHERE forgetting_id = ?1 AND kind = 'lane'
