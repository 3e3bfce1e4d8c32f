-- name: keep
INSERT INTO memory (
  id, key, kind, state, scope, trust, lane_key, conversation, account, channel, said_at, recorded_at, importance,
  content_hash, subject, speaker, text
)
SELECT
  draft.value ->> 'id', draft.value ->> 'key', draft.value ->> 'kind', 'active', draft.value ->> 'scope',
  draft.value ->> 'trust', draft.value ->> 'lane_key', draft.value ->> 'conversation', draft.value ->> 'account',
  draft.value ->> 'channel', draft.value ->> 'said_at', draft.value ->> 'at', draft.value ->> 'importance',
  unhex(draft.value ->> 'content_hash'), draft.value ->> 'subject', draft.value ->> 'speaker', draft.value ->> 'text'
FROM json_each(:drafts) AS draft
WHERE NOT EXISTS (
  SELECT 1 FROM memory_tombstone
  WHERE hash IN (unhex(draft.value ->> 'key_hash'), unhex(draft.value ->> 'content_hash'))
)
ON CONFLICT (key) DO NOTHING

-- name: keep_sources
INSERT INTO memory_source (memory_id, n, kind, ref)
SELECT memory.id, source.key, source.value ->> 0, source.value ->> 1
FROM json_each(:drafts) AS draft
CROSS JOIN memory ON memory.id = draft.value ->> 'id'
CROSS JOIN json_each(draft.value -> 'sources') AS source

-- name: keep_changes
INSERT INTO memory_change (memory_id, what, at)
SELECT memory.id, 'kept', memory.recorded_at
FROM json_each(:drafts) AS draft CROSS JOIN memory ON memory.id = draft.value ->> 'id'

-- name: kept
SELECT coalesce(memory.id, 0)
FROM json_each(:drafts) AS draft
LEFT JOIN memory ON memory.key = draft.value ->> 'key' AND memory.state <> 'forgotten'
ORDER BY draft.key

-- name: columns
memory.id, memory.key, memory.kind, memory.state, memory.scope, memory.trust, memory.channel, memory.account,
memory.conversation, memory.lane_key, memory.said_at, memory.recorded_at, memory.importance, memory.subject,
memory.speaker, memory.text,
(
  SELECT json_group_array(json_array(source.kind, source.ref) ORDER BY source.n)
  FROM memory_source AS source WHERE source.memory_id = memory.id
)

-- name: same_lane
(
  memory.lane_key = :lane_key AND memory.conversation = :conversation
  AND memory.account = :account AND memory.channel = :channel
)

-- name: heard
(
  :everything
  OR (
    memory.scope IN (SELECT value FROM json_each(:scopes))
    AND (memory.trust IN ('owner', 'known') OR /*same_lane*/)
    AND (
      :cross
      OR memory.kind NOT IN ('episode', 'thread_summary', 'session_summary', 'thread_state')
      OR /*same_lane*/
    )
  )
)

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

-- name: get
SELECT /*columns*/ FROM memory WHERE memory.id = :id AND memory.state <> 'forgotten' AND /*heard*/

-- name: counts
SELECT kind, count(*) FROM memory WHERE state = 'active' GROUP BY kind ORDER BY kind

-- name: match
WITH best AS MATERIALIZED (
  SELECT memory.id AS id, bm25(memory_text) AS score, memory.said_at AS said_at
  FROM memory_text CROSS JOIN memory ON memory.id = memory_text.rowid
  WHERE memory_text MATCH :query AND /*heard*/
  ORDER BY bm25(memory_text), memory.said_at DESC, memory.id DESC
  LIMIT :limit
)
SELECT best.score, /*columns*/
FROM best CROSS JOIN memory ON memory.id = best.id
ORDER BY best.score, best.said_at DESC, best.id DESC

-- name: match_top
WITH top AS MATERIALIZED (
  SELECT rowid AS id, bm25(memory_text) AS score FROM memory_text WHERE memory_text MATCH :query
  ORDER BY bm25(memory_text) LIMIT :depth
),
best AS MATERIALIZED (
  SELECT memory.id AS id, top.score AS score, memory.said_at AS said_at
  FROM top CROSS JOIN memory ON memory.id = top.id
  WHERE /*heard*/
  ORDER BY top.score, memory.said_at DESC, memory.id DESC
  LIMIT :limit
)
SELECT (SELECT max(score) FROM top), (SELECT count(*) FROM top), best.score, /*columns*/
FROM best CROSS JOIN memory ON memory.id = best.id
ORDER BY best.score, best.said_at DESC, best.id DESC

-- name: frequencies
SELECT term, doc, (SELECT coalesce(max(seq), 0) FROM memory_change)
FROM memory_term WHERE term IN (SELECT value FROM json_each(:terms))
ORDER BY doc, term
