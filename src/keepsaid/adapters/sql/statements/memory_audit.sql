-- name: entry
memory.id, memory.text, memory.scope, memory.trust = 'external', memory.slot, memory.subject, memory.attribute, memory.value,
coalesce(memory.valid_from, memory.said_at), memory.valid_to, memory.superseded_by, memory.recorded_at, memory.access_count,
memory.pinned OR memory.corrects OR memory.confirmed_at IS NOT NULL OR memory.last_access_at IS NOT NULL,
memory.kind IN (SELECT value FROM json_each/*texts*/(:kinds)),
(
  SELECT json_group_array(json_array(source.kind, source.ref) ORDER BY source.n)
  FROM memory_source AS source WHERE source.memory_id = memory.id
)

-- name: learned
SELECT /*entry*/ FROM memory
WHERE memory.id > :after AND memory.state = 'active' AND memory.kind IN (SELECT value FROM json_each/*texts*/(:kinds))
ORDER BY memory.id LIMIT :limit

-- name: texts
SELECT id, text || char(10) || value || char(10) || subject || char(10) || speaker FROM memory
WHERE id > :after AND state <> 'forgotten' ORDER BY id LIMIT :limit

-- name: entries
SELECT /*entry*/ FROM json_each/*numbers*/(:ids) AS wanted CROSS JOIN memory ON memory.id = wanted.value
WHERE memory.state = 'active'
