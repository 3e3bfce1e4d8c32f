-- name: space
SELECT id FROM space
WHERE model = :model AND revision = :revision AND dimension = :dimension AND weights_hash = :weights_hash

-- name: spaces
SELECT model, revision, dimension, weights_hash, reached FROM space ORDER BY reached DESC, id DESC

-- name: open_space
INSERT INTO space (model, revision, dimension, weights_hash, created_at)
VALUES (:model, :revision, :dimension, :weights_hash, :at) ON CONFLICT DO NOTHING

-- name: keep_vector
INSERT INTO vector (space, piece_id, memory_id, audience, vector)
SELECT :space, piece.id, piece.memory_id, piece.audience, :vector FROM memory_piece AS piece WHERE piece.id = :piece_id
ON CONFLICT DO NOTHING

-- name: reach
UPDATE space SET reached = max(reached, iif(
  EXISTS (SELECT 1 FROM memory_piece WHERE id > :reached),
  :reached,
  (SELECT coalesce(max(seq), 0) FROM sqlite_sequence WHERE name = 'memory_piece')
))
WHERE id = :space

-- name: unembedded
SELECT piece.id, iif(piece.speaker = '', piece.body, piece.speaker || ': ' || piece.body)
FROM memory_piece AS piece
WHERE piece.id > :after
AND NOT EXISTS (
  SELECT 1 FROM vector JOIN space ON space.id = vector.space
  WHERE vector.piece_id = piece.id AND space.model = :model AND space.revision = :revision
  AND space.dimension = :dimension AND space.weights_hash = :weights_hash
)
ORDER BY piece.id LIMIT :limit

-- name: last_change
SELECT (SELECT coalesce(max(seq), 0) FROM memory_change), (SELECT coalesce(max(id), 0) FROM vector)

-- name: changed
SELECT DISTINCT memory_id FROM memory_change WHERE seq > ?1 AND what IN ('changed', 'deleted')

-- name: vectors_between
SELECT id, memory_id, audience, vector FROM vector WHERE space = ?1 AND id >= ?2 AND id < ?3 ORDER BY id

-- name: vectors_by_id
SELECT vector.id, vector.vector
FROM carray(?1) AS wanted CROSS JOIN vector ON vector.id = wanted.value

-- name: block_counts
SELECT
  (SELECT count(*) FROM space),
  (SELECT (coalesce(max(seq), 0) + 1) / ?1 FROM sqlite_sequence WHERE name = 'vector'),
  (SELECT count(*) FROM vector_block)

-- name: archiving
SELECT 1 FROM memory_upkeep WHERE task = 'fade' AND ended_at IS NULL

-- name: ranges
SELECT (coalesce(max(seq), 0) + 1) / ?1 FROM sqlite_sequence WHERE name = 'vector'

-- name: dimensions
SELECT id, dimension FROM space ORDER BY id

-- name: block_numbers
SELECT number FROM vector_block WHERE space = ?1

-- name: packed
SELECT coalesce(sum(vectors), 0) FROM vector_block WHERE space = ?1

-- name: blocks
SELECT ids, memories, audiences, signs FROM vector_block WHERE space = ?1 ORDER BY number

-- name: keep_block
INSERT INTO vector_block (space, number, vectors, ids, memories, audiences, signs) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)
