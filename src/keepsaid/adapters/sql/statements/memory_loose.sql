-- name: edges
SELECT max(source_id), count(*) FROM (SELECT source_id FROM association WHERE source_id > ?1 ORDER BY source_id LIMIT ?2) AS found

-- name: edges_loose
SELECT edge.source_id, edge.target_id, edge.relation FROM association AS edge
WHERE edge.source_id > :after AND edge.source_id <= :upto AND NOT (
  EXISTS (SELECT 1 FROM memory WHERE memory.id = edge.source_id AND memory.state <> 'forgotten')
  AND EXISTS (SELECT 1 FROM memory WHERE memory.id = edge.target_id AND memory.state <> 'forgotten')
)

-- name: edges_cut
DELETE FROM association WHERE source_id = ?1 AND target_id = ?2 AND relation = ?3

-- name: mentions
SELECT max(memory_id), count(*) FROM (SELECT memory_id FROM mention WHERE memory_id > ?1 ORDER BY memory_id LIMIT ?2) AS found

-- name: mentions_loose
SELECT mention.memory_id, mention.entity_id FROM mention
WHERE mention.memory_id > :after AND mention.memory_id <= :upto AND NOT (
  EXISTS (SELECT 1 FROM memory WHERE memory.id = mention.memory_id AND memory.state <> 'forgotten')
  AND EXISTS (SELECT 1 FROM entity WHERE entity.id = mention.entity_id)
)

-- name: mentions_cut
DELETE FROM mention WHERE memory_id = ?1 AND entity_id = ?2

-- name: sources
SELECT max(memory_id), count(*) FROM (
  SELECT memory_id FROM memory_source WHERE memory_id > ?1 ORDER BY memory_id LIMIT ?2
) AS found

-- name: sources_loose
SELECT source.memory_id, source.n FROM memory_source AS source
WHERE source.memory_id > :after AND source.memory_id <= :upto
AND NOT EXISTS (SELECT 1 FROM memory WHERE memory.id = source.memory_id)

-- name: sources_cut
DELETE FROM memory_source WHERE memory_id = ?1 AND n = ?2

-- name: statements
SELECT max(memory_id), count(*) FROM (
  SELECT memory_id FROM memory_statement WHERE memory_id > ?1 ORDER BY memory_id LIMIT ?2
) AS found

-- name: statements_loose
SELECT statement.memory_id, statement.key FROM memory_statement AS statement
WHERE statement.memory_id > :after AND statement.memory_id <= :upto
AND NOT EXISTS (SELECT 1 FROM memory WHERE memory.id = statement.memory_id)

-- name: statements_cut
DELETE FROM memory_statement WHERE memory_id = ?1 AND key = ?2

-- name: chains
SELECT max(superseded_by), count(*) FROM (
  SELECT superseded_by FROM memory WHERE superseded_by > ?1 ORDER BY superseded_by LIMIT ?2
) AS found

-- name: chains_loose
SELECT memory.id, memory.superseded_by FROM memory
WHERE memory.superseded_by > :after AND memory.superseded_by <= :upto
AND NOT EXISTS (SELECT 1 FROM memory AS later WHERE later.id = memory.superseded_by)

-- name: chains_cut
UPDATE memory SET superseded_by = NULL, state = iif(state = 'merged', 'archived', state)
WHERE id = ?1 AND superseded_by = ?2

-- name: pieces
SELECT max(id), count(*) FROM (SELECT id FROM memory_piece WHERE id > ?1 ORDER BY id LIMIT ?2) AS found

-- name: pieces_loose
SELECT piece.memory_id, piece.id FROM memory_piece AS piece
WHERE piece.id > :after AND piece.id <= :upto AND NOT EXISTS (
  SELECT 1 FROM memory WHERE memory.id = piece.memory_id AND memory.state IN ('active', 'superseded')
)

-- name: pieces_cut
DELETE FROM memory_piece WHERE memory_id = ?1 AND id = ?2

-- name: vectors
SELECT max(id), count(*) FROM (SELECT id FROM vector WHERE id > ?1 ORDER BY id LIMIT ?2) AS found

-- name: vectors_loose
SELECT vector.memory_id, vector.id FROM vector
WHERE vector.id > :after AND vector.id <= :upto
AND NOT EXISTS (SELECT 1 FROM memory_piece AS piece WHERE piece.id = vector.piece_id)

-- name: vectors_cut
DELETE FROM vector WHERE memory_id = ?1 AND id = ?2

-- name: entities
SELECT max(id), count(*) FROM (SELECT id FROM entity WHERE id > ?1 ORDER BY id LIMIT ?2) AS found

-- name: entities_loose
SELECT entity.id FROM entity
WHERE entity.id > :after AND entity.id <= :upto
AND NOT EXISTS (SELECT 1 FROM mention WHERE mention.entity_id = entity.id)

-- name: entities_cut
DELETE FROM entity WHERE id = ?1

-- name: ended
SELECT id FROM memory
WHERE state = 'active' AND valid_to <= ?1 AND +kind IN (SELECT value FROM json_each/*texts*/(?2)) ORDER BY valid_to LIMIT ?3

-- name: end
UPDATE memory SET state = 'superseded' WHERE id = ?1

-- name: withdrawn
SELECT memory.id FROM memory
WHERE memory.state = 'active' AND memory.kind = 'bulletin' AND (
  SELECT count(*) FROM json_each(memory.metadata, '$.memories') AS told
  LEFT JOIN memory AS source ON source.id = CAST(told.value AS INTEGER) AND source.state = 'active' AND source.scope = memory.scope
  AND source.trust <> 'external' AND (source.valid_to IS NULL OR source.valid_to > ?1)
  WHERE source.id IS NULL
) > 0
LIMIT ?2

-- name: withdraw
DELETE FROM memory WHERE id = ?1
