-- A table that is filled and emptied in each commit is taken for as large as it once was, and read by its partner's rows.
-- name: stale
SELECT memory.id, memory.text, memory.speaker, memory.said_at, memory.audience, memory.kind = 'episode'
FROM carray(ARRAY(SELECT memory_id FROM memory_stale)) AS stale JOIN memory ON memory.id = stale.value
WHERE memory.state IN ('active', 'superseded') AND memory.kind <> 'bulletin'
ORDER BY memory.id

-- name: counted_next
SELECT max(term) FROM (
  SELECT DISTINCT term FROM memory_posting WHERE term > ?1 ORDER BY term LIMIT ?2
) AS found

-- name: count_terms
INSERT INTO term_df (term, pieces, visits)
SELECT
  term, count(*) FILTER (WHERE body > 0) + count(*) FILTER (WHERE grams > 0),
  count(*) FILTER (WHERE body > 0) + count(*) FILTER (WHERE speaker > 0)
  + count(*) FILTER (WHERE said > 0) + count(*) FILTER (WHERE grams > 0)
FROM memory_posting WHERE term > :after AND term <= :upto GROUP BY term
