-- The score is what FTS5's bm25() comes to with its constants, k1 = 1.2 and b = 0.75. What is the same for all postings of a
-- term is found once, and postings are read term by term (OFFSET keeps both so): in a plan for any numbers, the range of
-- pieces would come first.
-- name: worths
SELECT
  found.term, (SELECT CAST(tokens AS REAL) / greatest(pieces, 1) FROM memory_size WHERE one = 1) AS average,
  greatest(ln((found.of - found.pieces + 0.5) / (found.pieces + 0.5)), 0.000001) AS worth
FROM (
  SELECT
    left(wanted.value, 250) AS term, (SELECT CAST(least(pieces, :until - :first) AS REAL) FROM memory_size WHERE one = 1) AS of,
    (
      SELECT CAST(count(*) AS REAL) FROM memory_posting
      WHERE term = left(wanted.value, 250) AND piece_id >= :first AND piece_id < :until
    ) AS pieces
  FROM json_each/*texts*/(:terms) AS wanted OFFSET 0
) AS found OFFSET 0

-- name: postings
(/*worths*/) AS wanted CROSS JOIN LATERAL (
  SELECT piece_id, CAST(tokens AS REAL) AS tokens, CAST(body + speaker + said + grams AS REAL) AS often FROM memory_posting
  WHERE term = wanted.term AND piece_id >= :first AND piece_id < :until OFFSET 0
) AS posting

-- name: score
sum(wanted.worth * posting.often * 2.2 / (posting.often + 1.2 * (0.25 + 0.75 * posting.tokens / wanted.average)))

-- name: scored
SELECT posting.piece_id, /*score*/ AS score FROM /*postings*/ GROUP BY posting.piece_id

-- name: matches
SELECT found.piece_id FROM (/*scored*/) AS found
ORDER BY found.score DESC, found.piece_id DESC LIMIT :depth

-- name: matches_heard
SELECT memory.id FROM (/*scored*/) AS found JOIN memory_piece AS memory ON memory.id = found.piece_id
WHERE memory.audience IN (/*audiences*/)
ORDER BY found.score DESC, memory.id DESC LIMIT :depth

-- each piece of a fact has KNOWN of piece_index.py among its terms: few are scored
-- name: matches_known
SELECT memory.id
FROM (
  SELECT posting.piece_id, /*score*/ AS score FROM /*postings*/
  WHERE posting.piece_id IN (SELECT known.piece_id FROM memory_posting AS known WHERE known.term = chr(57344) || 'known')
  GROUP BY posting.piece_id
) AS found JOIN memory_piece AS memory ON memory.id = found.piece_id
WHERE NOT memory.beside AND /*heard*/
ORDER BY found.score DESC, memory.id DESC LIMIT :share

-- name: pieces
SELECT pieces FROM memory_size

-- name: frequencies_now
SELECT
  wanted.value, count(*) FILTER (WHERE posting.body > 0) + count(*) FILTER (WHERE posting.grams > 0),
  count(*) FILTER (WHERE posting.body > 0) + count(*) FILTER (WHERE posting.speaker > 0)
  + count(*) FILTER (WHERE posting.said > 0) + count(*) FILTER (WHERE posting.grams > 0)
FROM json_each/*texts*/(:terms) AS wanted
LEFT JOIN LATERAL (SELECT * FROM memory_posting WHERE term = left(wanted.value, 250) OFFSET 0) AS posting ON true
GROUP BY wanted.value

-- BEFORE and AFTER of piece_index.py as numbers: a plan for any numbers would read and sort a tenth of all pieces.
-- name: pieces_beside
SELECT
  memory.memory_id, memory.said_at, memory.own_terms, memory.mark_terms, memory.terms, memory.speaker, memory.audience,
  memory.beside, memory.id
FROM json_each/*numbers*/(:pieces) AS found
JOIN memory_piece AS piece ON piece.id = found.value AND piece.beside
CROSS JOIN LATERAL (
  (
    SELECT id FROM memory_piece AS after
    WHERE after.beside AND after.audience = piece.audience
    AND (after.said_at, after.memory_id, after.n) > (piece.said_at, piece.memory_id, piece.n)
    ORDER BY after.said_at, after.memory_id, after.n LIMIT 2
  )
  UNION
  (
    SELECT id FROM memory_piece AS before
    WHERE before.beside AND before.audience = piece.audience
    AND (before.said_at, before.memory_id, before.n) < (piece.said_at, piece.memory_id, piece.n)
    ORDER BY before.said_at DESC, before.memory_id DESC, before.n DESC LIMIT 1
  )
  UNION
  (
    SELECT id FROM memory_piece AS next
    WHERE next.beside AND next.audience = piece.audience
    AND (next.said_at, next.memory_id) > (piece.said_at, piece.memory_id) AND next.n < 2
    ORDER BY next.said_at, next.memory_id, next.n LIMIT 4
  )
  UNION
  (
    SELECT id FROM memory_piece AS last
    WHERE last.beside AND last.audience = piece.audience
    AND (last.said_at, last.memory_id) < (piece.said_at, piece.memory_id)
    ORDER BY last.said_at DESC, last.memory_id DESC, last.n DESC LIMIT 1
  )
) AS near
JOIN memory_piece AS memory ON memory.id = near.id

-- The rows of memories and pieces are looked up one by one (OFFSET keeps it so): a plan that counts the listener's rule for
-- each row reads all of 10,000 instead.
-- name: pieces_heard
SELECT
  memory.memory_id, memory.said_at, memory.own_terms, memory.mark_terms, memory.terms, memory.speaker, memory.audience,
  memory.beside, memory.id
FROM json_each/*numbers*/(:pieces) AS wanted
CROSS JOIN LATERAL (SELECT * FROM memory_piece WHERE id = wanted.value OFFSET 0) AS memory
WHERE /*heard*/
ORDER BY wanted.rowid

-- name: fetch
SELECT /*columns*/
FROM json_each/*numbers*/(:ids) AS wanted
CROSS JOIN LATERAL (SELECT * FROM memory WHERE id = wanted.value OFFSET 0) AS memory
WHERE memory.state IN ('active', 'superseded') AND /*heard*/
AND (CAST(:as_of AS INTEGER) IS NULL OR (
  coalesce(memory.valid_from, memory.said_at) <= :as_of AND (memory.valid_to IS NULL OR memory.valid_to > :as_of)
))
ORDER BY wanted.rowid
