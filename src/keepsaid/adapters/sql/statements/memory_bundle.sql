-- name: told
SELECT memory.id FROM memory
WHERE memory.state IN ('active', 'superseded', 'archived', 'merged') AND (/*heard*/ OR (
  -- what was said with the listener in a direct chat
  memory.trust <> 'external' AND memory.chat_of <> ''
  AND (substr(memory.scope, 1, 13) = 'conversation:' OR substr(memory.scope, 1, 5) = 'lane:')
  AND memory.chat_of IN (
    SELECT :person
    UNION ALL
    SELECT other.name FROM identity AS one CROSS JOIN identity AS other ON other.person = one.person
    WHERE one.name = :person
  )
))
ORDER BY memory.id

-- name: entries
SELECT /*columns*/,
  memory.content_hash, memory.confirmed_at, memory.last_decayed_at,
  (SELECT after.key FROM memory AS after WHERE after.id = memory.superseded_by AND after.state <> 'forgotten'),
  (
    SELECT json_group_array(source.statement ORDER BY source.n)
    FROM memory_source AS source WHERE source.memory_id = memory.id
  ),
  (
    SELECT json_group_array(
      json_array(said.key, said.start, said.said_at, said.ends, said.corrects, said.counted) ORDER BY said.key
    )
    FROM memory_statement AS said WHERE said.memory_id = memory.id
  ),
  (
    SELECT json_group_array(
      json_array(entity.key, entity.created_at, mention.name, mention.weight, mention.created_at) ORDER BY entity.key
    )
    FROM mention CROSS JOIN entity ON entity.id = mention.entity_id WHERE mention.memory_id = memory.id
  ),
  (
    SELECT json_group_array(
      json_array(widened.before, widened.after, widened.by, widened.reason, widened.at) ORDER BY widened.seq
    )
    FROM memory_widened AS widened WHERE widened.memory_id = memory.id
  )
FROM json_each/*numbers*/(:ids) AS wanted CROSS JOIN memory ON memory.id = wanted.value
ORDER BY memory.id

-- name: edges
SELECT source.id, target.id, source.key, target.key, edge.relation, edge.weight, edge.created_at
FROM association AS edge
CROSS JOIN memory AS source ON source.id = edge.source_id
CROSS JOIN memory AS target ON target.id = edge.target_id
WHERE source.state <> 'forgotten' AND target.state <> 'forgotten'
ORDER BY edge.source_id, edge.target_id, edge.relation

-- name: tombstones
SELECT hash, created_at FROM memory_tombstone ORDER BY hash

-- name: entombed
SELECT 1 FROM memory_tombstone WHERE hash IN (SELECT unhex(value) FROM json_each/*texts*/(:hashes)) LIMIT 1

-- name: by_key
SELECT /*columns*/ FROM memory WHERE memory.key = :key

-- name: said_in
SELECT memory.key FROM memory_statement AS said CROSS JOIN memory ON memory.id = said.memory_id WHERE said.key = :key

-- name: beside
SELECT key FROM memory WHERE slot = :slot AND state <> 'forgotten'

-- name: like
SELECT key FROM memory
WHERE content_hash = :content_hash AND slot IS NULL AND state IN ('active', 'archived') AND kind = :kind

-- name: ends
SELECT memory.id, memory.state FROM memory WHERE memory.key = :key AND memory.state <> 'forgotten'

-- name: edge
SELECT 1 FROM association WHERE source_id = :source AND target_id = :target AND relation = :relation

-- name: id_taken
SELECT 1 FROM memory WHERE id = :id

-- name: open_audience
INSERT INTO memory_audience (scope, external, bound, laned, channel, account, conversation, lane_key)
VALUES (?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING

-- name: audience
SELECT id FROM memory_audience
WHERE scope = ? AND external = ? AND bound = ? AND laned = ? AND channel = ? AND account = ? AND conversation = ?
AND lane_key = ?

-- name: take
INSERT INTO memory (
  id, key, audience, kind, state, scope, trust, lane_key, conversation, account, channel, said_at, recorded_at, importance,
  content_hash, subject, speaker, derived, version, metadata, text, attribute, value, slot, valid_from, stated_to,
  valid_to, confidence, corrects, speaker_id, subject_id, chat_of, confirmed_at, last_access_at, access_count,
  evidence_count, pinned, last_decayed_at
)
VALUES (
  :id, :key, :audience, :kind, :state, :scope, :trust, :lane_key, :conversation, :account, :channel, :said_at, :at,
  :importance, unhex(:content_hash), :subject, :speaker, :derived, 0, :metadata, :text, :attribute, :value, unhex(:slot),
  :valid_from, :stated_to, :valid_to, :confidence, :corrects, :speaker_id, :subject_id, :chat_of, :confirmed_at,
  :last_access_at, :access_count, :evidence, :pinned, :last_decayed_at
)

-- name: take_source
INSERT INTO memory_source (memory_id, n, kind, ref, statement) VALUES (?, ?, ?, ?, ?)

-- name: take_statement
INSERT INTO memory_statement (key, memory_id, start, said_at, ends, corrects, counted)
VALUES (?2, ?1, ?3, ?4, ?5, ?6, ?7) ON CONFLICT DO NOTHING

-- name: take_entity
INSERT INTO entity (key, created_at) VALUES (?, ?) ON CONFLICT DO NOTHING

-- name: take_mention
INSERT INTO mention (memory_id, entity_id, name, words, weight, created_at)
SELECT ?1, id, ?3, ?4, ?5, ?6 FROM entity WHERE key = ?2

-- name: take_widened
INSERT INTO memory_widened (memory_id, before, after, by, reason, at) VALUES (?, ?, ?, ?, ?, ?)

-- name: take_edge
INSERT INTO association (source_id, target_id, relation, weight, created_at)
VALUES (:source, :target, :relation, :weight, :at)

-- name: standing
SELECT id, state, valid_to, superseded_by FROM memory WHERE key = :key AND state <> 'forgotten'

-- name: leads_to
WITH RECURSIVE after (id) AS (
  SELECT CAST(:target AS INTEGER)
  UNION
  SELECT memory.superseded_by FROM after CROSS JOIN memory ON memory.id = after.id
  WHERE memory.superseded_by IS NOT NULL
)
SELECT 1 FROM after WHERE id = :id

-- name: take_link
UPDATE memory SET superseded_by = :target WHERE id = :id

-- name: identities
SELECT identity.name, identity.person FROM identity
WHERE identity.name IN (SELECT value FROM json_each/*texts*/(:names)) OR identity.person = :person

-- name: members
SELECT name FROM identity WHERE person = :person

-- name: take_identity
INSERT INTO identity (name, person, joined_at, joined_by) VALUES (?, ?, ?, ?)

-- name: bury
INSERT INTO memory_tombstone (hash, created_at) VALUES (?, ?) ON CONFLICT DO NOTHING
