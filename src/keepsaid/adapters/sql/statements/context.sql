-- name: head_of
SELECT lane.id, coalesce(version, 0), coalesce(summarised_until, 0), coalesce(floor, 0), coalesce(left_out, 0), summary,
  lane.transcript, coalesce(attempts, 0), coalesce(next_at, 0), coalesce(changed_at, 0)
FROM lane LEFT JOIN lane_context ON lane_context.lane_id = lane.id
WHERE lane.channel = ? AND lane.account = ? AND lane.conversation = ? AND lane.key = ?

-- name: head
SELECT coalesce(version, 0), coalesce(summarised_until, 0), coalesce(floor, 0), coalesce(left_out, 0), summary,
  lane.transcript, coalesce(attempts, 0), coalesce(next_at, 0),
  coalesce(changed_at, 0)
FROM lane LEFT JOIN lane_context ON lane_context.lane_id = lane.id WHERE lane.id = ?

-- name: summary
SELECT version, first, last, text, kind, model, created_at, trust FROM lane_summary WHERE lane_id = ?1 AND version = ?2

-- name: tail
/*part records_after*/
ORDER BY position DESC LIMIT ?3

-- name: posted
SELECT posted_after, text, trust FROM (
  SELECT id, posted_after, text, trust, row_number() OVER (PARTITION BY posted_after ORDER BY id DESC) AS n
  FROM reply INDEXED BY reply_posted
  WHERE lane_id = ?1 AND posted_after >= ?2 AND text <> '' AND state NOT IN ('dead', 'not_deliverable')
    AND NOT (posted_after = ?3 AND created_at <= ?4)
) AS found
WHERE n <= ?5 ORDER BY posted_after, id

-- name: span
/*part records_after*/
ORDER BY position LIMIT ?3

-- name: role_at
SELECT role FROM transcript WHERE lane_id = ?1 AND position = ?2

-- name: said_between
SELECT count(*), coalesce(sum(length(text)), 0) FROM transcript
WHERE lane_id = ?1 AND position BETWEEN ?2 AND ?3 AND role IN ('user', 'assistant') AND unprompted = 0

-- name: trusts_between
SELECT DISTINCT role, iif(role = 'tool', speaker, ''),
  iif(role = 'user' AND substr(text, 1, 11) IN ('[forwarded]', '[forwarded:'), 'external', trust)
FROM transcript WHERE lane_id = ?1 AND position BETWEEN ?2 AND ?3

-- name: keep_summary
INSERT INTO lane_summary (lane_id, version, first, last, text, kind, model, created_at, messages, chars, trust)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)

-- name: keep_cut
INSERT INTO lane_cut (lane_id, version, first, last, reason, left_out, created_at) VALUES (?, ?, ?, ?, ?, ?, ?)

-- name: set_head
INSERT INTO lane_context (lane_id, version, summarised_until, floor, left_out, summary, changed_at)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)
ON CONFLICT (lane_id) DO UPDATE SET version = ?2, summarised_until = ?3, floor = ?4, left_out = ?5, summary = ?6,
  changed_at = ?7, attempts = 0, next_at = NULL, error = ''

-- name: set_failed
INSERT INTO lane_context (lane_id, version, changed_at, attempts, next_at, error) VALUES (?1, 0, ?4, 1, ?3, ?2)
ON CONFLICT (lane_id) DO UPDATE SET attempts = lane_context.attempts + 1, next_at = ?3, error = ?2

-- name: copy_due
INSERT INTO summary_due (lane_id, version) VALUES (?1, ?2) ON CONFLICT (lane_id) DO UPDATE SET version = ?2

-- name: incognito_between
SELECT EXISTS (
  SELECT 1 FROM session WHERE session.lane_id = ?1 AND session.incognito = 1
    AND session.first <= ?3 AND coalesce(session.last, ?3) >= ?2
)

-- name: copies_due
SELECT lane.channel, lane.account, lane.conversation, lane.key, lane_summary.version, first, last, text, kind, model,
  created_at,
  lane.external_from IS NOT NULL OR EXISTS (
    SELECT 1 FROM message WHERE message.lane_id = lane.id AND message.trust = 'external'
  ) OR EXISTS (
    SELECT 1 FROM transcript INDEXED BY transcript_tool
    WHERE transcript.lane_id = lane.id AND transcript.role = 'tool'
    AND transcript.speaker NOT IN (SELECT value FROM json_each/*texts*/(?2))
  ), lane_summary.trust
FROM summary_due
JOIN lane ON lane.id = summary_due.lane_id
JOIN lane_summary ON lane_summary.lane_id = summary_due.lane_id AND lane_summary.version = summary_due.version
ORDER BY summary_due.lane_id LIMIT ?1

-- name: copied
DELETE FROM summary_due WHERE lane_id = ?1 AND version = ?2

-- name: of_conversation
SELECT lane.key, made.version, made.first, made.last, made.text, made.kind, made.model, made.created_at,
  (SELECT sum(messages) FROM lane_summary WHERE lane_id = lane.id AND version <= made.version),
  (SELECT sum(chars) FROM lane_summary WHERE lane_id = lane.id AND version <= made.version),
  lane.external_from IS NOT NULL OR EXISTS (
    SELECT 1 FROM message WHERE message.lane_id = lane.id AND message.trust = 'external'
  ) OR EXISTS (
    SELECT 1 FROM transcript INDEXED BY transcript_tool
    WHERE transcript.lane_id = lane.id AND transcript.role = 'tool'
    AND transcript.speaker NOT IN (SELECT value FROM json_each/*texts*/(?5))
  ),
  EXISTS (SELECT 1 FROM lane_cut WHERE lane_id = lane.id AND version > made.version AND reason = 'reset'),
  made.trust
FROM lane JOIN lane_summary AS made ON made.lane_id = lane.id AND made.version = (
  SELECT max(version) FROM lane_summary WHERE lane_id = lane.id AND last <= lane.transcript - ?4 AND NOT EXISTS (
    SELECT 1 FROM session WHERE session.lane_id = lane.id AND session.incognito = 1
      AND session.first <= lane_summary.last AND coalesce(session.last, lane.transcript) >= lane_summary.first
  )
)
WHERE lane.channel = ?1 AND lane.account = ?2 AND lane.conversation = ?3 ORDER BY lane.key

-- name: used
SELECT coalesce(max(step.tokens_in), 0) FROM step JOIN turn ON turn.id = step.turn_id
WHERE step.turn_id = (SELECT id FROM turn WHERE lane_id = ?1 AND state = 'committed' ORDER BY id DESC LIMIT 1)
  AND turn.started_at >= ?2

-- name: past
SELECT version, first, last, kind, created_at FROM lane_summary WHERE lane_id = ?1
UNION ALL
SELECT version, first, last, reason, created_at FROM lane_cut WHERE lane_id = ?1
ORDER BY 1
