-- name: keep_audiences
INSERT INTO memory_audience (scope, external, bound, laned, channel, account, conversation, lane_key)
SELECT DISTINCT
  draft.value -> 'audience' ->> 0, CAST(draft.value -> 'audience' ->> 1 AS INTEGER), CAST(draft.value -> 'audience' ->> 2 AS INTEGER),
  CAST(draft.value -> 'audience' ->> 3 AS INTEGER), draft.value -> 'audience' ->> 4, draft.value -> 'audience' ->> 5,
  draft.value -> 'audience' ->> 6, draft.value -> 'audience' ->> 7
FROM json_each(:drafts) AS draft
WHERE true
ON CONFLICT DO NOTHING

-- name: keep
INSERT INTO memory (
  id, key, audience, kind, state, scope, trust, lane_key, conversation, account, channel, said_at, recorded_at, importance,
  content_hash, subject, speaker, derived, version, metadata, text, attribute, value, slot, valid_from, stated_to,
  valid_to, confidence, corrects, speaker_id, subject_id, chat_of
)
SELECT
  CAST(draft.value ->> 'id' AS INTEGER), draft.value ->> 'key',
  (
    SELECT id FROM memory_audience
    WHERE scope = draft.value -> 'audience' ->> 0 AND external = CAST(draft.value -> 'audience' ->> 1 AS INTEGER)
    AND bound = CAST(draft.value -> 'audience' ->> 2 AS INTEGER) AND laned = CAST(draft.value -> 'audience' ->> 3 AS INTEGER)
    AND channel = draft.value -> 'audience' ->> 4 AND account = draft.value -> 'audience' ->> 5
    AND conversation = draft.value -> 'audience' ->> 6 AND lane_key = draft.value -> 'audience' ->> 7
  ),
  draft.value ->> 'kind', 'active', draft.value ->> 'scope',
  draft.value ->> 'trust', draft.value ->> 'lane_key', draft.value ->> 'conversation', draft.value ->> 'account',
  draft.value ->> 'channel', CAST(draft.value ->> 'said_at' AS INTEGER), CAST(draft.value ->> 'at' AS INTEGER), CAST(draft.value ->> 'importance' AS REAL),
  unhex(draft.value ->> 'content_hash'), draft.value ->> 'subject', draft.value ->> 'speaker',
  CAST(draft.value ->> 'derived' AS INTEGER), CAST(draft.value ->> 'version' AS INTEGER), draft.value ->> 'metadata', draft.value ->> 'text',
  draft.value ->> 'attribute', draft.value ->> 'value', unhex(draft.value ->> 'slot'),
  CAST(draft.value ->> 'valid_from' AS INTEGER), CAST(draft.value ->> 'stated_to' AS INTEGER),
  CAST(draft.value ->> 'stated_to' AS INTEGER), CAST(draft.value ->> 'confidence' AS REAL), CAST(draft.value ->> 'corrects' AS INTEGER),
  draft.value ->> 'speaker_id', draft.value ->> 'subject_id', draft.value ->> 'chat_of'
FROM json_each(:drafts) AS draft
WHERE (CAST(draft.value ->> 'asked' AS INTEGER) = 1 OR NOT EXISTS (
  SELECT 1 FROM memory_tombstone
  WHERE hash IN (SELECT unhex(value) FROM json_each/*texts*/(draft.value -> 'tombstones'))
))
AND NOT EXISTS (
  SELECT 1 FROM json_each/*texts*/(draft.value -> 'echoes') AS echo
  CROSS JOIN memory_echo ON memory_echo.hash = unhex(echo.value)
)
ON CONFLICT (key) DO UPDATE SET audience = excluded.audience, scope = excluded.scope, trust = excluded.trust, said_at = excluded.said_at,
  recorded_at = excluded.recorded_at, content_hash = excluded.content_hash, version = excluded.version,
  metadata = excluded.metadata, text = excluded.text
WHERE excluded.version > memory.version AND memory.state <> 'forgotten'

-- name: keep_sources
INSERT INTO memory_source (memory_id, n, kind, ref)
SELECT memory.id, source.key, source.value ->> 0, source.value ->> 1
FROM json_each(:drafts) AS draft
CROSS JOIN memory ON memory.id = CAST(draft.value ->> 'id' AS INTEGER)
CROSS JOIN json_each(draft.value -> 'sources') AS source

-- name: kept
SELECT coalesce(memory.id, 0)
FROM json_each(:drafts) AS draft
LEFT JOIN memory ON memory.key = draft.value ->> 'key' AND memory.state <> 'forgotten'
ORDER BY draft.key

-- name: columns
memory.id, memory.key, memory.kind, memory.state, memory.scope, memory.trust, memory.channel, memory.account,
memory.conversation, memory.lane_key, memory.said_at, memory.recorded_at, memory.importance, memory.subject,
memory.speaker, memory.text, memory.derived, memory.version, memory.metadata,
(
  SELECT json_group_array(json_array(source.kind, source.ref) ORDER BY source.n)
  FROM memory_source AS source WHERE source.memory_id = memory.id
),
memory.access_count, memory.last_access_at, memory.attribute, memory.value, memory.valid_from, memory.stated_to,
memory.confidence, memory.corrects, /*replaced_by*/, /*held_until*/,
memory.evidence_count, memory.pinned,
memory.speaker_id, memory.subject_id, memory.chat_of

-- name: held_until
-- a message of whose facts none holds any more held until the last of them did
CASE WHEN memory.kind = 'episode' AND memory.valid_to IS NULL AND memory.key >= 'message:' AND memory.key < 'message;' THEN (
  SELECT iif(min(iif(fact.state = 'superseded' AND fact.valid_to IS NOT NULL, 1, 0)) = 1, max(fact.valid_to), NULL) FROM /*learned_from*/
) ELSE memory.valid_to END

-- name: replaced_by
CASE WHEN memory.kind = 'episode' AND memory.key >= 'message:' AND memory.key < 'message;' THEN (
  SELECT iif(min(iif(fact.state = 'superseded', 1, 0)) = 1, max(fact.superseded_by), NULL) FROM /*learned_from*/
) ELSE memory.superseded_by END

-- name: learned_from
memory_source AS link CROSS JOIN memory AS fact ON fact.id = link.memory_id
WHERE link.kind = 'message' AND link.ref = substr(memory.key, 9) AND fact.slot IS NOT NULL
AND fact.state IN ('active', 'superseded')

-- name: same_lane
(
  audience.laned AND audience.lane_key = :lane_key AND audience.conversation = :conversation
  AND audience.account = :account AND audience.channel = :channel
)

-- name: scopes
SELECT value FROM json_each/*texts*/(:scopes)
UNION ALL
SELECT 'person:' || other.name FROM identity AS one CROSS JOIN identity AS other ON other.person = one.person
WHERE one.name = :person

-- name: audiences
SELECT audience.id FROM memory_audience AS audience
WHERE audience.scope IN (/*scopes*/)
AND (NOT audience.external OR /*same_lane*/)
AND CASE audience.bound
  WHEN 0 THEN true
  WHEN 1 THEN :cross = 1 OR (:chats = 1 AND audience.scope >= 'person:' AND audience.scope < 'person;') OR /*same_lane*/
  ELSE :asked = 1
END

-- name: heard
(:everything = 1 OR memory.audience IN (/*audiences*/))

-- name: find
SELECT /*columns*/
FROM memory
WHERE memory.state = 'active' AND /*heard*/
ORDER BY memory.said_at DESC, memory.id DESC
LIMIT :limit

-- name: find_kind
SELECT /*columns*/
FROM memory
WHERE memory.state = 'active' AND memory.kind = :kind AND /*heard*/
ORDER BY memory.said_at DESC, memory.id DESC
LIMIT :limit

-- name: find_important
SELECT /*columns*/
FROM memory
WHERE memory.state = 'active' AND memory.kind = :kind AND memory.kind <> 'episode' AND /*heard*/
ORDER BY memory.importance DESC, memory.said_at DESC, memory.id DESC
LIMIT :limit

-- name: get
SELECT /*columns*/ FROM memory WHERE memory.id = :id AND memory.state <> 'forgotten' AND /*heard*/

-- name: counts
SELECT kind, count(*) FROM memory WHERE state = 'active' GROUP BY kind ORDER BY kind

-- name: matches
SELECT rowid FROM memory_text WHERE memory_text MATCH :query AND rowid >= :first AND rowid < :until
ORDER BY bm25(memory_text), rowid DESC LIMIT :depth

-- name: matches_heard
SELECT memory.id
FROM memory_text CROSS JOIN memory_piece AS memory ON memory.id = memory_text.rowid
WHERE memory_text MATCH :query AND memory.audience IN (/*audiences*/)
ORDER BY bm25(memory_text), memory.id DESC LIMIT :depth

-- name: any_known
SELECT 1 FROM memory INDEXED BY memory_known WHERE memory.state = 'active' AND memory.kind <> 'episode' LIMIT 1

-- name: matches_known
SELECT memory.id
FROM memory_text CROSS JOIN memory_piece AS memory ON memory.id = memory_text.rowid
WHERE memory_text MATCH :query AND /*heard*/
ORDER BY bm25(memory_text), memory.id DESC LIMIT :share

-- name: pieces_heard
SELECT
  memory.memory_id, memory.said_at, memory.own_terms, memory.mark_terms, memory.terms, memory.speaker, memory.audience,
  memory.beside, memory.id
FROM json_each/*numbers*/(:pieces) AS wanted CROSS JOIN memory_piece AS memory ON memory.id = wanted.value
WHERE /*heard*/
ORDER BY wanted.rowid

-- name: pieces_beside
SELECT
  memory.memory_id, memory.said_at, memory.own_terms, memory.mark_terms, memory.terms, memory.speaker, memory.audience,
  memory.beside, memory.id
FROM json_each/*numbers*/(:pieces) AS found
CROSS JOIN memory_piece AS piece ON piece.id = found.value AND piece.beside
CROSS JOIN memory_piece AS memory ON memory.id IN (
  SELECT id FROM (
    SELECT after.id FROM memory_piece AS after
    WHERE after.beside AND after.audience = piece.audience
    AND (after.said_at, after.memory_id, after.n) > (piece.said_at, piece.memory_id, piece.n)
    ORDER BY after.said_at, after.memory_id, after.n LIMIT :before
  ) AS found
  UNION ALL
  SELECT id FROM (
    SELECT before.id FROM memory_piece AS before
    WHERE before.beside AND before.audience = piece.audience
    AND (before.said_at, before.memory_id, before.n) < (piece.said_at, piece.memory_id, piece.n)
    ORDER BY before.said_at DESC, before.memory_id DESC, before.n DESC LIMIT :after
  ) AS found
  -- a long memory stands between its neighbours as one
  UNION ALL
  SELECT id FROM (
    SELECT next.id FROM memory_piece AS next
    WHERE next.beside AND next.audience = piece.audience
    AND (next.said_at, next.memory_id) > (piece.said_at, piece.memory_id) AND next.n < :before
    ORDER BY next.said_at, next.memory_id, next.n LIMIT 2 * :before
  ) AS found
  UNION ALL
  SELECT id FROM (
    SELECT last.id FROM memory_piece AS last
    WHERE last.beside AND last.audience = piece.audience
    AND (last.said_at, last.memory_id) < (piece.said_at, piece.memory_id)
    ORDER BY last.said_at DESC, last.memory_id DESC, last.n DESC LIMIT :after
  ) AS found
)

-- name: fetch
SELECT /*columns*/
FROM json_each/*numbers*/(:ids) AS wanted CROSS JOIN memory ON memory.id = wanted.value
WHERE memory.state IN ('active', 'superseded') AND /*heard*/
AND (CAST(:as_of AS INTEGER) IS NULL OR (
  coalesce(memory.valid_from, memory.said_at) <= :as_of AND (memory.valid_to IS NULL OR memory.valid_to > :as_of)
))
ORDER BY wanted.rowid

-- name: counted
SELECT pieces FROM term_count

-- name: pieces
SELECT count(*) FROM memory_piece

-- name: frequencies
SELECT wanted.value, coalesce(term_df.pieces, 0), coalesce(term_df.visits, 0)
FROM json_each/*texts*/(:terms) AS wanted LEFT JOIN term_df ON term_df.term = wanted.value

-- name: frequencies_now
SELECT
  wanted.value,
  (SELECT sum(doc) FROM memory_term WHERE term = wanted.value AND col IN ('body', 'grams')),
  (SELECT sum(doc) FROM memory_term WHERE term = wanted.value)
FROM json_each/*texts*/(:terms) AS wanted

-- name: pieces_about
SELECT coalesce((SELECT seq FROM sqlite_sequence WHERE name = 'memory_piece'), 0)
