-- name: held_turn
SELECT turn.state, turn.batch_id FROM turn JOIN batch ON batch.id = turn.batch_id
WHERE turn.id = ?1 AND batch.fence = ?2 AND batch.state = 'leased' AND turn.state = 'open'

-- name: step_state
SELECT state FROM step WHERE turn_id = ? AND n = ?

-- name: start_step
INSERT INTO step (turn_id, n, kind, subject, input_hash, repeatable, state, started_at)
VALUES (?, ?, ?, ?, ?, ?, 'started', ?)

-- name: start_again
UPDATE step SET tries = tries + 1, input_hash = ?3, subject = ?4, repeatable = ?5 WHERE turn_id = ?1 AND n = ?2

-- name: end_step
UPDATE step SET state = ?3, output = ?4, tokens_in = ?5, tokens_out = ?6, cost_micros = ?7, ended_at = ?8
WHERE turn_id = ?1 AND n = ?2

-- name: commit_turn
UPDATE turn SET state = ?2, model = ?3, tokens_in = ?4, tokens_out = ?5, cost_micros = ?6, ended_at = ?7, reason = ?8
WHERE id = ?1

-- name: finish_batch
UPDATE batch SET state = ?2, owner = NULL, lease_until = NULL, alone = 0, ended_at = ?3 WHERE id = ?1

-- name: lane_of_batch
SELECT lane_id, state, first, last FROM batch WHERE id = ?

-- name: speakers
WITH RECURSIVE /*part of_batch*/
SELECT message.id, iif(sender_name = '', sender, sender_name), text, received_at, event, sender, trust, direct
FROM walk JOIN message ON message.id = walk.id ORDER BY message.number

-- name: origins
SELECT id, sender, trust, direct FROM message WHERE id IN (SELECT value FROM carray(?))

-- name: extend_transcript
UPDATE lane SET transcript = transcript + ?2 WHERE id = ?1 RETURNING transcript - ?2

-- name: keep_records
INSERT INTO transcript (lane_id, position, session_id, turn_id, role, speaker, text, attached, calls, call_id, ref, created_at,
  sender, trust, direct)
VALUES /*rows*/

-- name: keep_trace
INSERT INTO trace (turn_id, body, created_at) VALUES (?, ?, ?)
ON CONFLICT (turn_id) DO UPDATE SET body = excluded.body

-- name: keep_injections
INSERT INTO injection (turn_id, memory_id, rank, how) VALUES /*rows*/ ON CONFLICT DO NOTHING

-- name: lane
SELECT channel, account, conversation, key FROM lane WHERE id = ?
