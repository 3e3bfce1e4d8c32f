-- name: buried
SELECT 1 FROM memory_tombstone WHERE hash IN (SELECT unhex(value) FROM json_each/*texts*/(:hashes)) LIMIT 1

-- name: known
SELECT memory.id, memory.state FROM memory_statement AS statement CROSS JOIN memory ON memory.id = statement.memory_id
WHERE statement.key = :key
UNION ALL
SELECT memory.id, memory.state FROM memory WHERE memory.key = :key
LIMIT 1

-- name: told
SELECT
  coalesce(statement.key, memory.key), memory.value, memory.scope,
  coalesce(statement.start, memory.valid_from, memory.said_at), coalesce(statement.said_at, memory.said_at),
  CASE WHEN statement.key IS NULL THEN memory.stated_to ELSE statement.ends END, coalesce(statement.corrects, memory.corrects), memory.id,
  coalesce(statement.key, memory.key) = memory.key
FROM memory LEFT JOIN memory_statement AS statement ON statement.memory_id = memory.id
WHERE memory.slot = :slot AND memory.state IN ('active', 'superseded', 'archived')
AND memory.metadata ->> '$.undone.by' IS NULL

-- name: sources_of
SELECT source.kind, source.ref
FROM json_each/*numbers*/(:ids) AS wanted CROSS JOIN memory_source AS source ON source.memory_id = wanted.value
ORDER BY source.memory_id, source.n

-- name: same_words
SELECT memory.id, memory.text, memory.subject
FROM (
  SELECT rowid AS piece_id FROM memory_text WHERE memory_text MATCH :query ORDER BY rowid DESC LIMIT :limit
) AS found
CROSS JOIN memory_piece AS piece ON piece.id = found.piece_id AND NOT piece.beside
CROSS JOIN memory ON memory.id = piece.memory_id
WHERE memory.state IN ('active', 'superseded', 'archived') AND memory.slot IS NULL AND memory.scope = :scope
AND (memory.superseded_by IS NULL OR memory.valid_to > :start)
AND memory.trust <> 'external' AND memory.kind IN (SELECT value FROM json_each/*texts*/(:kinds))
ORDER BY memory.id

-- name: say
INSERT INTO memory_statement (key, memory_id, start, said_at, ends, corrects, counted)
VALUES (:key, :memory_id, :start, :said_at, :ends, :corrects, :counted)

-- name: say_founder
INSERT INTO memory_statement (key, memory_id, start, said_at, ends, corrects, counted)
SELECT memory.key, memory.id, coalesce(memory.valid_from, memory.said_at), memory.said_at, memory.stated_to,
  memory.corrects, 1
FROM json_each/*numbers*/(:ids) AS wanted CROSS JOIN memory ON memory.id = wanted.value
WHERE NOT EXISTS (SELECT 1 FROM memory_statement AS statement WHERE statement.key = memory.key)

-- name: name_source
UPDATE memory_source SET statement = (SELECT key FROM memory WHERE id = :memory_id)
WHERE memory_id = :memory_id AND statement = ''

-- name: add_source
INSERT INTO memory_source (memory_id, n, kind, ref, statement)
SELECT
  :memory_id, (SELECT coalesce(max(n) + 1, 0) FROM memory_source WHERE memory_id = :memory_id), :kind, :ref, :key
WHERE NOT EXISTS (
  SELECT 1 FROM memory_source WHERE memory_id = :memory_id AND kind = :kind AND ref = :ref
)

-- name: copy
INSERT INTO memory (
  id, key, audience, kind, state, scope, trust, derived, lane_key, conversation, account, channel, said_at, valid_from,
  valid_to, stated_to, recorded_at, importance, confidence, content_hash, subject, attribute, value, slot, speaker,
  version, metadata, text, speaker_id, subject_id, chat_of
)
SELECT
  :id, :key, audience, kind, 'active', scope, trust, derived, lane_key, conversation, account, channel, :said_at, :start,
  :ends, :ends, :at, importance, confidence, content_hash, subject, attribute, value, slot, speaker, version, metadata,
  text, speaker_id, subject_id, chat_of
FROM memory WHERE id = :of

-- name: move_statement
UPDATE memory_statement SET memory_id = :to WHERE key = :key

-- name: move_sources
UPDATE memory_source SET
  memory_id = :to, n = n + 1 + (SELECT coalesce(max(n), -1) FROM memory_source WHERE memory_id = :to)
WHERE memory_id = :of AND statement = :key

-- name: counted
UPDATE memory SET evidence_count = max(1, (
  SELECT count(*) FROM memory_statement AS statement WHERE statement.memory_id = memory.id AND statement.counted
))
WHERE id = :id

-- name: held
SELECT valid_from, stated_to, valid_to, superseded_by, state, said_at FROM memory WHERE id = :id

-- name: hold
UPDATE memory SET
  valid_from = :start, stated_to = :ends, valid_to = :until, superseded_by = :after
WHERE id = :id

-- name: turn
UPDATE memory SET state = :state WHERE id = :id AND state <> :state AND state <> 'archived'

-- name: revive
UPDATE memory SET state = 'active', metadata = json_remove(metadata, '$.undone') WHERE id = :id AND state = 'archived'

-- name: strengthen
UPDATE memory SET
  confidence = max(confidence, :confidence), importance = max(importance, :importance),
  derived = min(derived, :derived), trust = CASE WHEN :trust = 'owner' THEN 'owner' ELSE trust END,
  valid_from = CASE WHEN slot IS NULL AND :start < coalesce(valid_from, said_at) THEN :start ELSE valid_from END
WHERE id = :id

-- name: unlink
DELETE FROM association WHERE source_id = :after AND target_id = :id AND relation = 'updates'

-- name: overdue
UPDATE memory SET state = 'superseded'
WHERE state = 'active' AND superseded_by IS NOT NULL AND valid_to <= :at

-- name: history
WITH RECURSIVE
one (id, slot) AS (SELECT memory.id, memory.slot FROM memory WHERE memory.id = :id AND /*heard*/),
after (id) AS (
  SELECT id FROM one WHERE slot IS NULL
  UNION
  SELECT memory.superseded_by FROM after CROSS JOIN memory ON memory.id = after.id
  WHERE memory.superseded_by IS NOT NULL
),
before (id) AS (
  SELECT id FROM one WHERE slot IS NULL
  UNION
  SELECT memory.id FROM before CROSS JOIN memory ON memory.superseded_by = before.id
),
version (id) AS (
  SELECT memory.id FROM one CROSS JOIN memory ON memory.slot = one.slot
  UNION
  SELECT id FROM after
  UNION
  SELECT id FROM before
)
SELECT /*columns*/
FROM version CROSS JOIN memory ON memory.id = version.id
WHERE memory.state IN ('active', 'superseded', 'archived', 'merged') AND /*heard*/
ORDER BY coalesce(memory.valid_from, memory.said_at), memory.id

-- name: pin
UPDATE memory SET pinned = :pinned WHERE id = :id

-- name: confirm
UPDATE memory SET confidence = 1.0, confirmed_at = max(coalesce(confirmed_at, :at), :at)
WHERE id = :id AND state IN ('active', 'superseded', 'archived') RETURNING 1

-- name: put_away
UPDATE memory SET state = 'archived', pinned = 0
WHERE id IN (SELECT value FROM json_each/*numbers*/(:ids)) RETURNING id

-- name: bring_back
UPDATE memory SET state = 'active', last_access_at = max(coalesce(last_access_at, :at), :at),
  metadata = json_remove(metadata, '$.undone')
WHERE id IN (SELECT value FROM json_each/*numbers*/(:ids)) AND state = 'archived' AND kind IN (SELECT value FROM json_each/*texts*/(:kinds))
RETURNING id

-- name: standing
SELECT kind, scope, slot, attribute, value, state, valid_to, stated_to, superseded_by
FROM memory WHERE id = :id AND state <> 'forgotten'

-- name: successor
WITH RECURSIVE after (id) AS (
  SELECT superseded_by FROM memory WHERE id = :id
  UNION
  SELECT memory.superseded_by FROM after CROSS JOIN memory ON memory.id = after.id
)
SELECT memory.id FROM after CROSS JOIN memory ON memory.id = after.id
WHERE memory.state = 'active' AND (memory.valid_to IS NULL OR memory.valid_to > :at) LIMIT 1

-- name: contradicts
SELECT 1 FROM association
WHERE relation = 'contradicts' AND (source_id = :one AND target_id = :other OR source_id = :other AND target_id = :one) LIMIT 1

-- name: corrected
SELECT /*columns*/
FROM memory WHERE memory.id = :id AND memory.state IN ('active', 'superseded', 'archived')

-- name: take_statements
UPDATE memory_statement SET memory_id = :to WHERE memory_id = :of

-- name: unsay
UPDATE memory SET state = 'merged', superseded_by = :to WHERE id = :of

-- name: take_sources
UPDATE memory_source SET
  memory_id = :to, n = n + 1 + (SELECT coalesce(max(n), -1) FROM memory_source WHERE memory_id = :to)
WHERE memory_id = :of AND NOT EXISTS (
  SELECT 1 FROM memory_source AS same
  WHERE same.memory_id = :to AND same.kind = memory_source.kind AND same.ref = memory_source.ref
)

-- name: replace
UPDATE memory SET valid_to = :at, superseded_by = :after, state = CASE state WHEN 'archived' THEN state ELSE 'superseded' END
WHERE id = :id AND superseded_by IS NULL

-- name: slotted
SELECT
  memory.id, iif(memory.subject_id <> '', memory.subject_id, memory.subject), memory.attribute, memory.value, memory.slot
FROM json_each/*numbers*/(:ids) AS wanted CROSS JOIN memory ON memory.id = wanted.value
WHERE memory.slot IS NOT NULL AND memory.state <> 'forgotten'

-- name: renew_slot
UPDATE memory SET slot = :slot WHERE id = :id

-- name: newest
SELECT recorded_at FROM memory WHERE id = (SELECT max(id) FROM memory)
