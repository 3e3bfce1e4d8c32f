-- name: extension
SELECT quote_ident(namespace.nspname) FROM pg_extension AS extension
JOIN pg_namespace AS namespace ON namespace.oid = extension.extnamespace WHERE extension.extname = 'vector'

-- an index of halfvec holds at most 4,000 numbers
-- name: large
SELECT space.id, space.dimension FROM space JOIN vector_block AS block ON block.space = space.id
WHERE space.dimension <= 4000 GROUP BY space.id, space.dimension HAVING sum(block.vectors) >= $1 ORDER BY space.id

-- name: is_made
SELECT to_regclass($1) IS NOT NULL

-- an audience that changes and a vector that is deleted change and delete the copy
-- name: make
CREATE SCHEMA IF NOT EXISTS /*near*/;
CREATE UNIQUE INDEX IF NOT EXISTS vector_id_audience ON vector (id, audience);
CREATE TABLE IF NOT EXISTS /*near*/.near_space (space bigint PRIMARY KEY, reached bigint NOT NULL);
CREATE TABLE IF NOT EXISTS /*near*/.near_vector (
  id bigint PRIMARY KEY,
  space bigint NOT NULL,
  audience bigint NOT NULL,
  memory_id bigint NOT NULL,
  near /*vector*/.halfvec NOT NULL,
  FOREIGN KEY (id, audience) REFERENCES vector (id, audience) ON UPDATE CASCADE ON DELETE CASCADE
);
CREATE INDEX IF NOT EXISTS near_vector_audience ON /*near*/.near_vector (space, audience)

-- name: make_space
CREATE INDEX IF NOT EXISTS near_vector_/*space*/ ON /*near*/.near_vector
USING hnsw ((near::/*vector*/.halfvec(/*dimension*/)) /*vector*/.halfvec_ip_ops) WHERE space = /*space*/;
INSERT INTO /*near*/.near_space (space, reached) VALUES (/*space*/, 0) ON CONFLICT DO NOTHING

-- name: reached
SELECT reached FROM /*near*/.near_space WHERE space = $1

-- name: waiting
SELECT id, audience, memory_id, vector FROM vector WHERE space = $1 AND id > $2 ORDER BY id LIMIT $3

-- name: fill
INSERT INTO /*near*/.near_vector (id, space, audience, memory_id, near)
VALUES ($1, $2, $3, $4, CAST($5 AS /*vector*/.halfvec)) ON CONFLICT DO NOTHING

-- name: reach
UPDATE /*near*/.near_space SET reached = $2 WHERE space = $1

-- name: tune
SET LOCAL hnsw.iterative_scan TO relaxed_order; SET LOCAL hnsw.ef_search TO 400; SET LOCAL hnsw.max_scan_tuples TO 100000

-- name: readable
SELECT count(*) FROM (
  SELECT 1 FROM /*near*/.near_vector WHERE space = $1 AND audience = ANY ($2) LIMIT $3
) AS readable

-- name: compared
WITH compared AS MATERIALIZED (
  SELECT memory_id, near OPERATOR(/*vector*/.<#>) CAST($2 AS /*vector*/.halfvec) AS away
  FROM /*near*/.near_vector WHERE space = $1 AND audience = ANY ($3)
)
SELECT memory_id, -away, (SELECT -avg(away) FROM compared) FROM compared ORDER BY away LIMIT $4

-- name: nearest
SELECT memory_id, -(near::/*vector*/.halfvec(/*dimension*/) OPERATOR(/*vector*/.<#>) $1::/*vector*/.halfvec(/*dimension*/))
FROM /*near*/.near_vector WHERE space = /*space*/ AND ($2::bigint[] IS NULL OR audience = ANY ($2))
ORDER BY near::/*vector*/.halfvec(/*dimension*/) OPERATOR(/*vector*/.<#>) $1::/*vector*/.halfvec(/*dimension*/) LIMIT $3

-- name: background
SELECT -avg(near OPERATOR(/*vector*/.<#>) CAST($2 AS /*vector*/.halfvec))
FROM /*near*/.near_vector TABLESAMPLE SYSTEM (/*percent*/) REPEATABLE (7)
WHERE space = $1 AND ($3::bigint[] IS NULL OR audience = ANY ($3))

-- name: filled
SELECT reltuples FROM pg_class WHERE oid = to_regclass($1)
