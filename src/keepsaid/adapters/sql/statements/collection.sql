-- name: due
SELECT session.id, session.lane_id, session.collection, session.fence, session.attempts, session.first,
  coalesce(session.last, lane.transcript), coalesce(session.processed_until, 0), session.ruled_until,
  session.firm_until, coalesce(session.invalidated_at, 0), session.invalidated_reason,
  lane.channel, lane.account, lane.conversation, lane.key
FROM session JOIN lane ON lane.id = session.lane_id
WHERE session.collect_at <= ?1 AND session.incognito = 0 ORDER BY session.collect_at, session.id LIMIT 1

-- name: ripe
SELECT count(*) FROM (
  SELECT 1 FROM transcript
  WHERE lane_id = ?1 AND position > ?2 AND session_id = ?3 AND role IN ('user', 'assistant') LIMIT ?4
) AS found

-- name: wait
UPDATE session SET collection = ?2, collect_at = NULL WHERE id = ?1

-- name: claim
UPDATE session SET collection = ?2, collect_at = ?3, owner = ?4, fence = fence + 1 WHERE id = ?1

-- name: held
SELECT session.collection, session.lane_id, coalesce(session.last, lane.transcript),
  coalesce(session.processed_until, 0), session.ruled_until, coalesce(session.invalidated_at, 0)
FROM session JOIN lane ON lane.id = session.lane_id
WHERE session.id = ?1 AND session.fence = ?2 AND session.collection = 'claimed'

-- name: finding
SELECT id, session_id, first, last, extractor, statements, tokens_in, tokens_out, cost_micros, created_at
FROM finding WHERE session_id = ?1 AND applied_at IS NULL

-- name: keep_finding
INSERT INTO finding (
  id, session_id, lane_id, first, last, extractor, statements, tokens_in, tokens_out, cost_micros, created_at
)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)

-- name: applied
UPDATE finding SET applied_at = ?3 WHERE id = ?1 AND session_id = ?2

-- name: read
UPDATE session SET processed_until = ?2, ruled_until = ?3, invalidated_at = ?4, collection = ?5, collect_at = ?6,
  invalidated_reason = iif(CAST(?4 AS INTEGER) IS NULL, '', invalidated_reason), owner = '', attempts = 0, error = ''
WHERE id = ?1

-- name: failed
UPDATE session SET collection = ?2, collect_at = ?3, attempts = attempts + ?4, error = ?5, owner = '' WHERE id = ?1

-- name: parked
SELECT collection FROM session WHERE id = ?

-- name: requeue
UPDATE session SET collection = ?2, collect_at = ?3, firm_until = coalesce(invalidated_at, 0), attempts = 0, error = ''
WHERE id = ?1

-- name: last_record
SELECT session.first, coalesce(session.last, lane.transcript)
FROM session JOIN lane ON lane.id = session.lane_id WHERE session.id = ?

-- name: unread
SELECT session.id, session.first, coalesce(session.last, lane.transcript), coalesce(session.processed_until, 0),
  session.ruled_until
FROM session INDEXED BY session_unread JOIN lane ON lane.id = session.lane_id
WHERE (session.collection <> 'clean' OR session.ended_at IS NULL) AND session.id > ?1
  AND session.incognito = 0
ORDER BY session.id LIMIT ?2

-- name: ran
INSERT INTO daily_run (name, at) VALUES (?1, ?2) ON CONFLICT (name) DO UPDATE SET at = ?2

-- name: last_run
SELECT at FROM daily_run WHERE name = ?

-- name: claimed_elsewhere
SELECT id, collection FROM session WHERE collect_at IS NOT NULL AND collection = 'claimed' AND /*part is_dead*/

-- name: claimed_in
SELECT id, collection FROM session WHERE lane_id = ?1 AND collection = 'claimed'

-- name: give_back
UPDATE session SET collection = ?2, collect_at = ?3, owner = '' WHERE id = ?1

-- name: at_once
UPDATE session SET collect_at = ?1 WHERE collect_at > ?1 AND collection = 'marked'

-- name: extent
SELECT session.lane_id, lane.channel, lane.account, lane.conversation, lane.key, session.first,
  coalesce(session.last, lane.transcript),
  lane.external_from IS NOT NULL OR EXISTS (
    SELECT 1 FROM message WHERE message.lane_id = lane.id AND message.trust = 'external'
  )
FROM session JOIN lane ON lane.id = session.lane_id WHERE session.id = ?

-- name: utterances
SELECT position, role, text, ref, speaker, sender,
  iif(role = 'user', trust, iif(?5 = 1 OR trust = 'external' OR EXISTS (
    SELECT 1 FROM transcript AS beside WHERE beside.turn_id = transcript.turn_id AND beside.role = 'tool'
  ) OR EXISTS (
    SELECT 1 FROM transcript AS before WHERE before.lane_id = ?1 AND before.position >= ?6
    AND before.position < transcript.position AND before.role = 'tool'
    AND before.speaker NOT IN (SELECT value FROM json_each/*texts*/(?7))
  ), 'external', iif(trust = '', 'known', trust))),
  direct, created_at
FROM transcript
WHERE lane_id = ?1 AND position > ?2 AND position <= ?3 AND role <> 'tool' AND unprompted = 0
  AND (role <> 'assistant' OR (SELECT model FROM turn WHERE turn.id = transcript.turn_id) IS DISTINCT FROM 'none')
ORDER BY position LIMIT ?4

-- name: lines
SELECT session.id, lane.channel, lane.account, lane.conversation, lane.key, session.collection,
  session.invalidated_reason, session.invalidated_at, session.processed_until,
  max(session.ruled_until, coalesce(session.processed_until, 0)), session.collect_at, session.attempts, session.error,
  (SELECT count(*) FROM finding WHERE finding.session_id = session.id)
FROM session JOIN lane ON lane.id = session.lane_id
WHERE session.collection IN (SELECT value FROM json_each/*texts*/(?1)) AND session.collection <> 'clean'
ORDER BY session.collect_at IS NULL, session.collect_at, session.id LIMIT ?2
