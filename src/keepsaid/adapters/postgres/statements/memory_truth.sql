-- name: same_words
SELECT memory.id, memory.text, memory.subject
FROM (
  SELECT DISTINCT piece_id FROM memory_posting
  WHERE term IN (SELECT left(value, 250) FROM json_each/*texts*/(:terms)) AND body > 0 ORDER BY piece_id DESC LIMIT :limit
) AS found
JOIN memory_piece AS piece ON piece.id = found.piece_id AND piece.beside = 0
JOIN memory ON memory.id = piece.memory_id
WHERE memory.state IN ('active', 'superseded', 'archived') AND memory.slot IS NULL AND memory.scope = :scope
AND (memory.superseded_by IS NULL OR memory.valid_to > :start)
AND memory.trust <> 'external' AND memory.kind IN (SELECT value FROM json_each/*texts*/(:kinds))
ORDER BY memory.id
