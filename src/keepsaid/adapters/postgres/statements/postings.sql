-- name: any_changed
SELECT 1 FROM memory_unposted LIMIT 1

-- name: unposted
SELECT DISTINCT piece.id, piece.body, piece.speaker, piece.said, piece.grams
FROM carray(ARRAY(SELECT piece_id FROM memory_unposted WHERE pieces > 0)) AS unposted
JOIN memory_piece AS piece ON piece.id = unposted.value ORDER BY piece.id

-- name: post
INSERT INTO memory_posting (term, piece_id, tokens, body, speaker, said, grams)
SELECT * FROM unnest(?1, ?2, ?3, ?4, ?5, ?6, ?7)

-- a piece that came has as many tokens as each of its postings says
-- name: resize
UPDATE memory_size SET
  pieces = memory_size.pieces + changed.pieces,
  tokens = memory_size.tokens + changed.tokens
FROM (
  SELECT sum(unposted.pieces) AS pieces, sum(unposted.tokens + CASE WHEN unposted.pieces < 0 THEN 0 ELSE coalesce(
    (SELECT posting.tokens FROM memory_posting AS posting WHERE posting.piece_id = unposted.piece_id LIMIT 1), 0
  ) END) AS tokens
  FROM memory_unposted AS unposted
) AS changed

-- name: posted
DELETE FROM memory_unposted
