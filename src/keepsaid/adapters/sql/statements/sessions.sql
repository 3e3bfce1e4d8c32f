-- name: current
SELECT id, state, active_at, first, coalesce(processed_until, 0), incognito FROM session
WHERE lane_id = ? AND state IN ('active', 'sleeping')

-- name: ended_before
SELECT ended_reason FROM session WHERE lane_id = ? ORDER BY id DESC LIMIT 1

-- name: start
INSERT INTO session (id, lane_id, state, first, started_at, started_reason, active_at, quiet_since, incognito)
VALUES (?1, ?2, 'active', ?3, ?4, ?5, ?4, ?6, ?7)

-- name: touch
UPDATE session SET active_at = ?2, quiet_since = ?3 WHERE id = ?1

-- name: wake
UPDATE session SET state = ?2 WHERE id = ?1

-- name: unprocessed
SELECT count(*) FROM (
  SELECT 1 FROM transcript
  WHERE lane_id = ?1 AND position > ?2 AND session_id = ?3 AND role IN ('user', 'assistant') LIMIT ?4
) AS found

-- name: mark_of
SELECT collection, coalesce(invalidated_at, 0), coalesce(processed_until, 0), firm_until, collect_at IS NULL, incognito
FROM session
WHERE id = ?

-- name: invalidate
UPDATE session SET invalidated_reason = iif(?2 > coalesce(invalidated_at, 0), ?3, invalidated_reason),
  invalidated_at = max(coalesce(invalidated_at, 0), ?2), firm_until = iif(?4 = 1, max(firm_until, ?2), firm_until),
  collection = ?5, collect_at = iif(?5 = 'marked', coalesce(collect_at, ?6), collect_at)
WHERE id = ?1

-- name: told
SELECT transcript FROM lane WHERE id = ?

-- name: end
UPDATE session SET state = ?2, last = ?3, ended_at = ?4, ended_reason = ?5 WHERE id = ?1

-- name: quiet
SELECT session.id, session.first, lane.transcript, lane.due_at IS NOT NULL OR EXISTS (
  SELECT 1 FROM batch WHERE batch.lane_id = lane.id AND batch.state IN ('queued', 'leased')
)
FROM session JOIN lane ON lane.id = session.lane_id
WHERE session.ended_at IS NULL AND session.state = ?1 AND session.quiet_since <= ?2
ORDER BY session.quiet_since, session.id LIMIT ?3

-- name: not_quiet
UPDATE session SET quiet_since = ?2 WHERE id = ?1

-- name: never_quiet
UPDATE session SET quiet_since = ?2 WHERE ended_at IS NULL AND state = ?1 AND quiet_since > ?2

-- name: sleep
UPDATE session SET state = ?2 WHERE id = ?1

-- name: quiet_since
SELECT (SELECT min(quiet_since) FROM session WHERE ended_at IS NULL AND state = 'active'),
  (SELECT min(quiet_since) FROM session WHERE ended_at IS NULL AND state = 'sleeping')

-- name: sessions
SELECT session.id, state, first, coalesce(last, lane.transcript), started_at, active_at, started_reason, ended_at,
  ended_reason, invalidated_at, invalidated_reason, processed_until
FROM session JOIN lane ON lane.id = session.lane_id WHERE session.lane_id = ?1 ORDER BY session.id DESC LIMIT ?2

-- name: said_message
SELECT message.id FROM message JOIN lane ON lane.id = message.lane_id
WHERE message.provider_id = ?1 AND lane.channel = ?2 AND lane.account = ?3 AND lane.conversation = ?4
  AND forgotten_at IS NULL
ORDER BY message.id LIMIT 1

-- name: edited_message
SELECT message.id FROM message JOIN lane ON lane.id = message.lane_id
WHERE message.provider_id = ?1 AND lane.channel = ?2 AND lane.account = ?3 AND lane.conversation = ?4
  AND message.id < ?5 AND message.sender = ?6 AND forgotten_at IS NULL
ORDER BY message.id DESC LIMIT 1

-- name: said_reply
SELECT reply.id, reply.turn_id, iif(lane.key <> ?5 AND (lane.external_from IS NOT NULL OR EXISTS (
  SELECT 1 FROM message WHERE message.lane_id = lane.id AND message.trust = 'external'
) OR EXISTS (
  SELECT 1 FROM turn JOIN batch ON batch.id = turn.batch_id WHERE turn.id = reply.turn_id AND /*part incognito*/
)), '', reply.text),
  coalesce((SELECT trust FROM transcript WHERE transcript.ref <> '' AND transcript.ref = 'reply:' || reply.turn_id LIMIT 1), '')
FROM (
  SELECT id FROM reply WHERE provider_id = ?1
  UNION
  SELECT reply_id FROM reply_part WHERE provider_id = ?1
) AS named CROSS JOIN reply ON reply.id = named.id JOIN lane ON lane.id = reply.lane_id
WHERE reply.channel = ?2 AND reply.account = ?3 AND reply.conversation = ?4
ORDER BY reply.id LIMIT 1
