-- name: known
SELECT id FROM memory WHERE id IN (SELECT value FROM carray(?)) AND state <> 'forgotten'

-- name: of_conversation
SELECT id FROM memory WHERE conversation = ? AND state <> 'forgotten'

-- name: everything
SELECT id, text, value, scope, subject_id, speaker_id, trust, derived, kind FROM memory WHERE state <> 'forgotten'

-- name: by_key
SELECT id FROM memory WHERE key = ?

-- name: by_source
SELECT memory_id FROM memory_source WHERE kind = ? AND ref = ?

-- name: alike
SELECT other.id FROM memory JOIN memory AS other ON other.content_hash = memory.content_hash
WHERE memory.id = ? AND substr(memory.key, 1, 6) <> 'reply:'

-- name: merged_into
WITH RECURSIVE merged (id) AS (
  SELECT id FROM memory WHERE superseded_by = ?1 AND state = 'merged'
  UNION
  SELECT memory.id FROM merged CROSS JOIN memory ON memory.superseded_by = merged.id AND memory.state = 'merged'
)
SELECT id FROM merged

-- the sources of a merged memory stand with the memory that it was merged into, under its key
-- name: traced
SELECT id, key, kind, derived, text, content_hash, subject, attribute, value, speaker_id,
iif(state = 'merged', coalesce(superseded_by, 0), 0), (
  WITH RECURSIVE stands (id) AS (
    SELECT memory.id
    UNION
    SELECT merged.superseded_by FROM stands CROSS JOIN memory AS merged ON merged.id = stands.id
    WHERE merged.state = 'merged' AND merged.superseded_by IS NOT NULL
  )
  SELECT json_group_array(DISTINCT source.kind || ':' || source.ref)
  FROM stands CROSS JOIN memory_source AS source ON source.memory_id = stands.id
  WHERE stands.id = memory.id OR source.statement = memory.key
)
FROM memory WHERE id = ?

-- name: said
SELECT memory.id, memory.text FROM memory_text
JOIN memory_piece ON memory_piece.id = memory_text.rowid JOIN memory ON memory.id = memory_piece.memory_id
WHERE memory_text MATCH :query AND (memory.said_at < :before OR (memory.derived = 0 AND substr(memory.key, 1, 6) <> 'reply:'))

-- name: earliest
SELECT min(said_at) FROM memory WHERE id IN (SELECT value FROM carray(?))

-- name: made
SELECT memory.id, memory.text FROM memory_text
JOIN memory_piece ON memory_piece.id = memory_text.rowid JOIN memory ON memory.id = memory_piece.memory_id
WHERE memory_text MATCH :query AND memory.kind IN ('thread_summary', 'session_summary', 'thread_state')

-- name: bulletins
SELECT id, text, metadata FROM memory WHERE kind = 'bulletin' AND state = 'active'

-- name: bury
INSERT INTO memory_tombstone (hash, created_at) VALUES (?, ?) ON CONFLICT DO NOTHING

-- name: any_echoes
SELECT 1 FROM memory_echo LIMIT 1

-- name: echoed
SELECT 1 FROM memory_echo WHERE hash IN (SELECT unhex(value) FROM json_each/*texts*/(?1)) LIMIT 1

-- name: has_tombstone
SELECT 1 FROM memory_tombstone WHERE hash IN (SELECT unhex(value) FROM json_each/*texts*/(?1)) LIMIT 1

-- name: silenced
SELECT 1 FROM memory_echo WHERE hash IN (SELECT unhex(value) FROM json_each/*texts*/(?1)) LIMIT 1

-- name: lift
DELETE FROM memory_echo WHERE hash IN (SELECT unhex(value) FROM json_each/*texts*/(?1))

-- name: bury_echo
INSERT INTO memory_echo (hash, created_at) VALUES (?, ?) ON CONFLICT DO NOTHING

-- name: keep_aside
INSERT INTO memory_aside (forgetting_id, images) VALUES (?, ?)

-- name: aside
SELECT images FROM memory_aside WHERE forgetting_id = ? ORDER BY n DESC

-- name: drop_aside
DELETE FROM memory_aside WHERE forgetting_id = ?

-- name: tombstones
SELECT hash FROM memory_tombstone ORDER BY hash

-- name: buried_at
SELECT hash, created_at FROM memory_tombstone

-- name: all_named
SELECT id, key, kind, content_hash, subject, attribute, value, recorded_at FROM memory WHERE state <> 'forgotten'

-- name: state
SELECT state, text, speaker FROM memory WHERE id = ?

-- name: merged_texts
WITH RECURSIVE merged (id) AS (
  SELECT id FROM memory WHERE superseded_by = ?1 AND state = 'merged'
  UNION
  SELECT memory.id FROM merged CROSS JOIN memory ON memory.superseded_by = merged.id AND memory.state = 'merged'
)
SELECT memory.id, memory.text, memory.speaker FROM merged CROSS JOIN memory ON memory.id = merged.id

-- name: hide
UPDATE memory SET state = ?2 WHERE id = ?1

-- name: forget_sources
DELETE FROM memory_source WHERE memory_id = ?

-- name: forget_widened
DELETE FROM memory_widened WHERE memory_id = ?

-- name: forget_memory
DELETE FROM memory WHERE id = ?

-- name: unlink
UPDATE memory SET superseded_by = NULL WHERE superseded_by = ?

-- the row stays, so that its number is never another audience's
-- name: unname_audiences
UPDATE memory_audience SET scope = 'forgotten:' || id, external = 0, bound = 0, laned = 0,
  channel = '', account = '', conversation = '', lane_key = ''
WHERE substr(scope, 1, 10) <> 'forgotten:' AND NOT EXISTS (SELECT 1 FROM memory_aside)
AND NOT EXISTS (SELECT 1 FROM memory WHERE audience = memory_audience.id AND state = 'active' AND kind <> 'episode')
AND NOT EXISTS (
  SELECT 1 FROM memory WHERE audience = memory_audience.id AND kind = 'episode' AND state IN ('active', 'superseded')
)
AND NOT EXISTS (SELECT 1 FROM memory WHERE audience = memory_audience.id AND state = 'archived')
AND NOT EXISTS (
  SELECT 1 FROM memory WHERE audience = memory_audience.id AND state IN ('superseded', 'merged', 'forgotten')
)

-- name: forget_identity
DELETE FROM identity WHERE name = ?

-- name: mentioned
SELECT entity_id FROM mention WHERE memory_id = ?

-- name: forget_entity
DELETE FROM entity WHERE id = ?1 AND NOT EXISTS (SELECT 1 FROM mention WHERE mention.entity_id = ?1)

-- name: totals
SELECT
  (SELECT count(*) FROM memory WHERE state <> 'forgotten' AND id IN (SELECT value FROM carray(?1))),
  (SELECT count(*) FROM memory_source WHERE memory_id IN (SELECT value FROM carray(?1))),
  (
    SELECT count(*) FROM (SELECT DISTINCT entity_id FROM mention WHERE memory_id IN (SELECT value FROM carray(?1))) AS named
    WHERE NOT EXISTS (
      SELECT 1 FROM mention
      WHERE mention.entity_id = named.entity_id AND mention.memory_id NOT IN (SELECT value FROM carray(?1))
    )
  ),
  (SELECT count(*) FROM identity WHERE name IN (SELECT value FROM json_each/*texts*/(?2)))

-- name: of_person
SELECT name FROM identity WHERE person = ? ORDER BY name

-- name: forget_term
DELETE FROM term_df WHERE term = ?1 AND NOT EXISTS (SELECT 1 FROM memory_term WHERE memory_term.term = ?1)
