-- name: stale
SELECT stale.memory_id, memory.text, memory.speaker, memory.said_at, memory.audience, memory.kind = 'episode'
FROM memory_stale AS stale CROSS JOIN memory ON memory.id = stale.memory_id
WHERE memory.state IN ('active', 'superseded') AND memory.kind <> 'bulletin'
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
SELECT n, terms, grams, body, speaker, said FROM memory_piece WHERE memory_id = :memory_id ORDER BY n

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

-- name: change_grams
UPDATE memory_piece SET terms = :terms, grams = :grams
WHERE memory_id = :memory_id AND n = :n

-- name: reindexed
SELECT reached, upto FROM reindex

-- name: next_former
SELECT id FROM memory WHERE id > :reached AND id <= :upto ORDER BY id LIMIT :count

-- name: mark_next_stale
INSERT INTO memory_stale (memory_id)
SELECT id FROM memory WHERE id > :reached AND id <= :upto ORDER BY id LIMIT :count
ON CONFLICT DO NOTHING

-- name: reach_reindexed
UPDATE reindex SET reached = coalesce(
  (SELECT max(id) FROM (SELECT id FROM memory WHERE id > :reached AND id <= :upto ORDER BY id LIMIT :count) AS found), upto
)

-- name: forget_counts
DELETE FROM term_df WHERE term > :after AND term <= :upto

-- name: counted_next
SELECT max(term) FROM (
  SELECT DISTINCT term FROM memory_term WHERE term > ?1 ORDER BY term LIMIT ?2
) AS found

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
