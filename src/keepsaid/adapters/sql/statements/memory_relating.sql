-- name: related_upto
SELECT coalesce((
  SELECT source_id FROM association WHERE relation = 'related_to' ORDER BY source_id DESC LIMIT 1
), 0)

-- name: unrelated
SELECT
  memory.id,
  (
    SELECT vector.vector FROM memory_piece AS piece CROSS JOIN vector ON vector.piece_id = piece.id
    WHERE piece.memory_id = memory.id AND vector.space = ours.id ORDER BY piece.n LIMIT 1
  ),
  (
    SELECT json_group_array(episode.id) FROM memory_source AS source
    CROSS JOIN memory AS episode ON episode.key = 'message:' || source.ref
    WHERE source.memory_id = memory.id AND +source.kind = 'message' AND episode.kind = 'episode'
    AND episode.state = 'active'
  )
FROM space AS ours CROSS JOIN memory
WHERE ours.model = :model AND ours.revision = :revision AND ours.dimension = :dimension
AND ours.weights_hash = :weights_hash AND memory.id > :after
AND +memory.state = 'active' AND +memory.kind IN (SELECT value FROM json_each/*texts*/(:kinds))
AND EXISTS (SELECT 1 FROM memory_piece AS piece WHERE piece.memory_id = memory.id)
ORDER BY memory.id LIMIT :limit

-- name: among_learned
SELECT memory.id FROM json_each/*numbers*/(:ids) AS wanted CROSS JOIN memory ON memory.id = wanted.value
WHERE memory.state = 'active' AND memory.kind IN (SELECT value FROM json_each/*texts*/(:kinds))
ORDER BY wanted.rowid
