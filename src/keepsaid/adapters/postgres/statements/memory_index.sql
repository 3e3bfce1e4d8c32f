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
