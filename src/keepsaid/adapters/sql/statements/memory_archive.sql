-- name: archived
SELECT id, shared FROM (
  SELECT memory.id, memory.said_at, (
    SELECT count(*) FROM json_each/*texts*/(:stems) AS stem WHERE instr(lower(memory.text), stem.value) > 0
  ) AS shared
  FROM memory
  WHERE memory.state = 'archived' AND /*heard*/
) AS found
WHERE shared > 0 ORDER BY shared DESC, said_at DESC, id DESC LIMIT :limit

-- name: fetch
SELECT /*columns*/
FROM json_each/*numbers*/(:ids) AS wanted CROSS JOIN memory ON memory.id = wanted.value
WHERE memory.state = 'archived' AND /*heard*/
AND (CAST(:as_of AS INTEGER) IS NULL OR (
  coalesce(memory.valid_from, memory.said_at) <= :as_of AND (memory.valid_to IS NULL OR memory.valid_to > :as_of)
))
ORDER BY wanted.rowid
