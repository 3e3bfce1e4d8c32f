-- name: open
CREATE VIRTUAL TABLE temp.piece_term USING fts5vocab (main, memory_text, instance)

-- name: postings
SELECT (SELECT group_concat(doc) FROM temp.piece_term WHERE term = wanted.value)
FROM json_each(?1) AS wanted ORDER BY wanted.key

-- name: totals
SELECT block FROM memory_text_data WHERE id = 1

-- name: sizes
SELECT piece.sz FROM carray(?1) AS wanted CROSS JOIN memory_text_docsize AS piece ON piece.id = wanted.value
