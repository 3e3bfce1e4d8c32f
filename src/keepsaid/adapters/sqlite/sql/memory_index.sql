-- name: stale
SELECT stale.memory_id, memory.text, memory.speaker, memory.said_at, memory.audience, memory.kind = 'episode'
FROM memory_stale AS stale CROSS JOIN memory ON memory.id = stale.memory_id
WHERE memory.state IN ('active', 'superseded')
ORDER BY stale.memory_id

-- name: settled
DELETE FROM memory_stale

-- name: before
SELECT substr(text, 1, :chars) FROM memory
WHERE kind = 'episode' AND state IN ('active', 'superseded') AND audience = :audience
AND (said_at, id) < (:said_at, :id)
ORDER BY said_at DESC, id DESC LIMIT :count

-- name: after
SELECT substr(text, 1, :chars) FROM memory
WHERE kind = 'episode' AND state IN ('active', 'superseded') AND audience = :audience
AND (said_at, id) > (:said_at, :id)
ORDER BY said_at, id LIMIT :count

-- name: pieces_of
SELECT n, terms, body, speaker, said FROM memory_piece WHERE memory_id = :memory_id ORDER BY n

-- name: drop_pieces
DELETE FROM memory_piece WHERE memory_id = :memory_id

-- name: add_piece
INSERT INTO memory_piece (
  memory_id, n, audience, said_at, own_terms, mark_terms, beside, terms, speaker, said, grams, body
)
VALUES (
  :memory_id, :n, :audience, :said_at, :own_terms, :mark_terms, :beside, :terms, :speaker, :said, :grams, :body
)

-- name: change_piece
UPDATE memory_piece SET terms = :terms
WHERE memory_id = :memory_id AND n = :n

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

-- name: open_space
INSERT INTO space (model, revision, dimension, weights_hash, created_at)
VALUES (:model, :revision, :dimension, :weights_hash, :at) ON CONFLICT DO NOTHING

-- name: space
SELECT id FROM space
WHERE model = :model AND revision = :revision AND dimension = :dimension AND weights_hash = :weights_hash

-- name: keep_vector
INSERT INTO vector (space, piece_id, memory_id, audience, vector)
SELECT :space, piece.id, piece.memory_id, piece.audience, :vector FROM memory_piece AS piece WHERE piece.id = :piece_id
ON CONFLICT DO NOTHING

-- name: last_change
SELECT (SELECT coalesce(max(seq), 0) FROM memory_change), (SELECT coalesce(max(id), 0) FROM vector)

-- name: changed
SELECT DISTINCT memory_id FROM memory_change WHERE seq > :after AND what <> 'kept'

-- name: vectors_after
SELECT id, memory_id, audience, vector FROM vector WHERE id > :after AND space = :space ORDER BY id LIMIT :limit

-- name: vectors_by_id
SELECT vector.id, vector.vector
FROM json_each(:ids) AS wanted CROSS JOIN vector ON vector.id = wanted.value

-- name: still_there
SELECT vector.id
FROM json_each(:ids) AS wanted CROSS JOIN vector ON vector.id = wanted.value

-- name: forget_counts
DELETE FROM term_df WHERE term > :after AND term <= :upto

-- name: counted_next
SELECT max(term) FROM (
  SELECT DISTINCT term FROM memory_term WHERE term > ?1 ORDER BY term LIMIT ?2
)

-- name: count_terms
INSERT INTO term_df (term, pieces, visits)
SELECT term, sum(iif(col IN ('body', 'grams'), doc, 0)), sum(doc) FROM memory_term
WHERE term > :after AND term <= :upto GROUP BY term

-- name: reach
UPDATE term_count SET reached = :upto, pieces = coalesce(:pieces, pieces)

-- name: forget_rest
DELETE FROM term_df WHERE term > :after

-- name: counted
SELECT pieces, reached FROM term_count

-- name: pieces_about
SELECT coalesce((SELECT seq FROM sqlite_sequence WHERE name = 'memory_piece'), 0)

-- name: any_stale
SELECT 1 FROM memory_stale LIMIT 1
