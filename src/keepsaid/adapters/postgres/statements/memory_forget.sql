-- pieces whose text has all terms, found by the longest, which is rare
-- name: holding
SELECT posting.piece_id FROM memory_posting AS posting
WHERE posting.term = (SELECT left(value, 250) FROM json_each/*texts*/(:terms) ORDER BY length(value) DESC LIMIT 1)
AND posting.body > 0 AND NOT EXISTS (
  SELECT 1 FROM json_each/*texts*/(:terms) AS wanted WHERE NOT EXISTS (
    SELECT 1 FROM memory_posting AS other
    WHERE other.term = left(wanted.value, 250) AND other.piece_id = posting.piece_id AND other.body > 0
  )
)

-- name: said
SELECT memory.id, memory.text FROM memory_piece JOIN memory ON memory.id = memory_piece.memory_id
WHERE memory_piece.id IN (/*holding*/)
AND (memory.said_at < :before OR (memory.derived = 0 AND substr(memory.key, 1, 6) <> 'reply:'))

-- name: made
SELECT memory.id, memory.text FROM memory_piece JOIN memory ON memory.id = memory_piece.memory_id
WHERE memory_piece.id IN (/*holding*/) AND memory.kind IN ('thread_summary', 'session_summary', 'thread_state')

-- name: forget_term
DELETE FROM term_df WHERE term = ?1 AND NOT EXISTS (SELECT 1 FROM memory_posting WHERE term = left(?1, 250))
