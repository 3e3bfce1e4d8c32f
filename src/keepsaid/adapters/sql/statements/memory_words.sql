-- name: stretches
SELECT number FROM word_stretch WHERE whole ORDER BY number

-- name: full
SELECT (coalesce(max(seq), 0) + 1) / ?1, (SELECT count(*) FROM word_stretch WHERE whole)
FROM sqlite_sequence WHERE name = 'memory_piece'

-- name: pieces
SELECT id, own_terms, mark_terms, substr(terms, 1, 4 * (own_terms + mark_terms)) FROM memory_piece
WHERE id >= ?1 AND id < ?2 ORDER BY id

-- name: pieces_in
SELECT count(*) FROM memory_piece WHERE id >= ?1 AND id < ?2

-- name: drop_stretch
DELETE FROM word_stretch WHERE number = ?1

-- name: begin_stretch
INSERT INTO word_stretch (number, pieces, whole) VALUES (?1, ?2, 0)

-- name: begun
SELECT 1 FROM word_stretch WHERE number = ?1

-- name: whole
UPDATE word_stretch SET whole = 1 WHERE number = ?1

-- name: keep_words
INSERT INTO word_block (id, words) VALUES (?1, ?2)

-- name: words
SELECT block.id, block.words
FROM carray(?1) AS wanted CROSS JOIN word_block AS block ON block.id = wanted.value

-- name: archiving
SELECT 1 FROM memory_upkeep WHERE task = 'fade' AND ended_at IS NULL
