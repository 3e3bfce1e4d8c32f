-- name: archived
SELECT memory.id, (
  SELECT count(*) FROM json_each(:stems) AS stem WHERE instr(lower(memory.text), stem.value)
) AS shared
FROM memory
WHERE memory.state = 'archived' AND /*heard*/ AND shared > 0
ORDER BY shared DESC, memory.said_at DESC, memory.id DESC
LIMIT :limit

-- name: fetch
SELECT /*columns*/
FROM json_each(:ids) AS wanted CROSS JOIN memory ON memory.id = wanted.value
WHERE memory.state = 'archived' AND /*heard*/
AND (:as_of IS NULL OR (
  coalesce(memory.valid_from, memory.said_at) <= :as_of AND (memory.valid_to IS NULL OR memory.valid_to > :as_of)
))
ORDER BY wanted.rowid
