-- name: undecided
SELECT
  older.id, newer.id, older.text, newer.text, coalesce(older.valid_from, older.said_at),
  coalesce(newer.valid_from, newer.said_at), older.slot IS NOT NULL AND older.slot = newer.slot, older.value, newer.value
FROM association AS edge
CROSS JOIN memory AS newer ON newer.id = edge.source_id
CROSS JOIN memory AS older ON older.id = edge.target_id
WHERE edge.source_id > :after AND edge.relation = 'related_to'
AND newer.state = 'active' AND older.state = 'active' AND newer.superseded_by IS NULL AND older.superseded_by IS NULL
AND newer.audience = older.audience AND newer.trust <> 'external'
AND newer.kind IN (SELECT value FROM json_each/*texts*/(:kinds)) AND older.kind IN (SELECT value FROM json_each/*texts*/(:kinds))
AND NOT EXISTS (SELECT 1 FROM memory_pair AS ruled WHERE ruled.newer = newer.id AND ruled.older = older.id)
AND NOT EXISTS (SELECT 1 FROM memory_pair AS ruled WHERE ruled.newer = older.id AND ruled.older = newer.id)
ORDER BY edge.source_id, edge.target_id LIMIT :limit

-- name: newest
SELECT coalesce(max(source_id), 0) FROM association

-- name: asked_since
SELECT count(*) FROM memory_pair WHERE at > ?1 AND by <> ''

-- name: keep_ruling
INSERT INTO memory_pair (newer, older, ruling, by, at)
SELECT :newer, :older, :ruling, :by, :at
WHERE (SELECT count(*) FROM memory WHERE id IN (:newer, :older) AND state = 'active' AND superseded_by IS NULL) = 2
ON CONFLICT DO NOTHING RETURNING 1

-- name: standing
SELECT slot, trust, coalesce(valid_from, said_at) FROM memory WHERE id = ?

-- name: replace
UPDATE memory SET
  valid_to = min(coalesce(valid_to, :at), :at), superseded_by = :after, state = 'superseded'
WHERE id = :id AND superseded_by IS NULL AND state = 'active'

-- name: fill_slot
UPDATE memory SET
  subject = same.subject, subject_id = same.subject_id, attribute = same.attribute, value = same.value, slot = same.slot
FROM memory AS same
WHERE memory.id = :id AND memory.slot IS NULL AND same.id = :like AND same.slot IS NOT NULL
