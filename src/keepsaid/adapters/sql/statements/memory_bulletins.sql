-- name: heard_scopes
/*scopes*/

-- name: standing
SELECT
  memory.scope, memory.text, memory.version, memory.said_at, memory.metadata,
  (
    SELECT count(*) FROM json_each(memory.metadata, '$.memories') AS told
    CROSS JOIN memory AS source ON source.id = CAST(told.value AS INTEGER)
    WHERE source.scope = memory.scope AND /*stands*/
  )
FROM json_each/*texts*/(:keys) AS wanted CROSS JOIN memory ON memory.key = wanted.value
WHERE memory.kind = 'bulletin' AND memory.state = 'active'
ORDER BY wanted.rowid

-- name: stands
source.state = 'active' AND source.trust <> 'external' AND (source.valid_to IS NULL OR source.valid_to > :now)

-- name: told
SELECT count(*) FROM json_each(:metadata, '$.memories') AS told
CROSS JOIN memory AS source ON source.id = CAST(told.value AS INTEGER)
WHERE source.scope = :scope AND /*stands*/

-- name: revision
SELECT coalesce((
  SELECT change.seq FROM memory_change AS change
  WHERE NOT EXISTS (SELECT 1 FROM memory WHERE memory.id = change.memory_id AND memory.kind = 'bulletin')
  ORDER BY change.seq DESC LIMIT 1
), 0)

-- name: audience
SELECT id FROM memory_audience WHERE scope = ?1 AND external = 0 AND bound = 0 AND laned = 0

-- name: telling
(memory.valid_to IS NULL OR memory.valid_to > :now)
AND NOT EXISTS (SELECT 1 FROM memory_source AS task WHERE task.memory_id = memory.id AND task.kind = 'task')

-- name: newest
SELECT /*columns*/
FROM memory
WHERE memory.audience = :audience AND memory.kind = :kind AND memory.state = 'active' AND memory.kind <> 'episode'
AND /*telling*/
ORDER BY memory.said_at DESC, memory.id DESC LIMIT :limit

-- name: weightiest
SELECT /*columns*/
FROM memory
WHERE memory.audience = :audience AND memory.kind = :kind AND memory.state = 'active' AND memory.kind <> 'episode'
AND /*telling*/
ORDER BY memory.importance DESC, memory.said_at DESC, memory.id DESC LIMIT :limit
