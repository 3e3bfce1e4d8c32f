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
ORDER BY wanted.key
