-- name: vectors_of
SELECT vector.space, vector.memory_id, vector.vector
FROM json_each/*numbers*/(:ids) AS wanted
CROSS JOIN memory_piece AS piece ON piece.memory_id = wanted.value
CROSS JOIN vector ON vector.piece_id = piece.id
ORDER BY vector.space, vector.memory_id, piece.n
