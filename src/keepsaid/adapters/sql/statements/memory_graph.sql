-- name: associate
INSERT INTO association (source_id, target_id, relation, weight, created_at)
SELECT source.id, target.id, draft.value ->> 2, CAST(draft.value ->> 3 AS REAL), :at
FROM json_each(:associations) AS draft
CROSS JOIN memory AS source ON source.id = CAST(draft.value ->> 0 AS INTEGER)
CROSS JOIN memory AS target ON target.id = CAST(draft.value ->> 1 AS INTEGER)
WHERE source.id <> target.id AND source.state <> 'forgotten' AND target.state <> 'forgotten'
ON CONFLICT (source_id, target_id, relation) DO UPDATE SET weight = excluded.weight
RETURNING 1

-- name: name_entities
INSERT INTO entity (key, created_at)
SELECT DISTINCT draft.value ->> 1, :at
FROM json_each(:mentions) AS draft CROSS JOIN memory ON memory.id = CAST(draft.value ->> 0 AS INTEGER)
WHERE memory.state <> 'forgotten'
ON CONFLICT DO NOTHING

-- name: mention
INSERT INTO mention (memory_id, entity_id, name, words, weight, created_at)
SELECT memory.id, entity.id, draft.value ->> 2, draft.value ->> 3, CAST(draft.value ->> 4 AS REAL), :at
FROM json_each(:mentions) AS draft
CROSS JOIN memory ON memory.id = CAST(draft.value ->> 0 AS INTEGER)
CROSS JOIN entity ON entity.key = draft.value ->> 1
WHERE memory.state <> 'forgotten'
ON CONFLICT (memory_id, entity_id) DO UPDATE SET name = excluded.name, words = excluded.words, weight = excluded.weight
RETURNING 1

-- name: related
SELECT EXISTS (SELECT 1 FROM association) OR EXISTS (SELECT 1 FROM mention)

-- name: heard
/*audiences*/

-- name: named
WITH RECURSIVE named (words, entity_id) AS (
  SELECT wanted.value, (SELECT min(mention.entity_id) FROM mention WHERE mention.words = wanted.value)
  FROM json_each/*texts*/(:names) AS wanted
  UNION ALL
  SELECT named.words, (
    SELECT min(mention.entity_id) FROM mention
    WHERE mention.words = named.words AND mention.entity_id > named.entity_id
  )
  FROM named WHERE named.entity_id IS NOT NULL
)
SELECT entity_id, name FROM (
  SELECT named.entity_id, (
  SELECT mention.name FROM mention CROSS JOIN memory ON memory.id = mention.memory_id
  WHERE mention.words = named.words AND mention.entity_id = named.entity_id
  AND memory.state IN ('active', 'superseded') AND (:everything = 1 OR memory.audience IN (SELECT value FROM json_each/*numbers*/(:audiences)))
  LIMIT 1
) AS name
  FROM named WHERE named.entity_id IS NOT NULL
) AS found
WHERE name IS NOT NULL ORDER BY entity_id LIMIT :limit

-- name: weighty
SELECT memory.id, memory.text, memory.speaker, EXISTS (
  SELECT 1 FROM mention
  WHERE mention.memory_id = memory.id AND mention.entity_id IN (SELECT value FROM json_each/*numbers*/(:entities))
)
FROM json_each/*numbers*/(:ids) AS wanted CROSS JOIN memory ON memory.id = wanted.value
WHERE memory.importance >= :importance AND memory.state IN ('active', 'superseded') AND (:everything = 1 OR memory.audience IN (SELECT value FROM json_each/*numbers*/(:audiences)))
ORDER BY wanted.rowid LIMIT :limit

-- name: starts
SELECT memory.id FROM json_each/*numbers*/(:ids) AS wanted CROSS JOIN memory ON memory.id = wanted.value
WHERE memory.state IN ('active', 'superseded') AND (:everything = 1 OR memory.audience IN (SELECT value FROM json_each/*numbers*/(:audiences)))
ORDER BY wanted.rowid

-- name: from_memories
SELECT
  node.value,
  (
    SELECT json_group_array(json_array(weight, 0, id, relation, importance, '')) FROM (
      SELECT edge.weight, memory.id, edge.relation, memory.importance
      FROM association AS edge CROSS JOIN memory ON memory.id = edge.target_id
      WHERE edge.source_id = node.value AND memory.state IN ('active', 'superseded') AND (:everything = 1 OR memory.audience IN (SELECT value FROM json_each/*numbers*/(:audiences)))
      ORDER BY edge.weight DESC, edge.target_id DESC, edge.relation LIMIT :fan
    ) AS found
  ),
  (
    SELECT json_group_array(json_array(weight, 0, id, relation, importance, '')) FROM (
      SELECT edge.weight, memory.id, edge.relation, memory.importance
      FROM association AS edge CROSS JOIN memory ON memory.id = edge.source_id
      WHERE edge.target_id = node.value AND memory.state IN ('active', 'superseded') AND (:everything = 1 OR memory.audience IN (SELECT value FROM json_each/*numbers*/(:audiences)))
      ORDER BY edge.weight DESC, edge.source_id DESC, edge.relation LIMIT :fan
    ) AS found
  ),
  (
    SELECT json_group_array(json_array(weight, 1, entity_id, 'mentions', 0, name)) FROM (
      SELECT mention.weight, mention.entity_id, mention.name FROM mention
      WHERE mention.memory_id = node.value ORDER BY mention.weight DESC, mention.entity_id DESC LIMIT :fan
    ) AS found
  )
FROM json_each/*numbers*/(:nodes) AS node

-- name: from_entities
SELECT
  node.value,
  (
    SELECT json_group_array(json_array(weight, 0, id, 'mentions', importance, '')) FROM (
      SELECT mention.weight, memory.id, memory.importance
      FROM mention CROSS JOIN memory ON memory.id = mention.memory_id
      WHERE mention.entity_id = node.value AND memory.state IN ('active', 'superseded') AND (:everything = 1 OR memory.audience IN (SELECT value FROM json_each/*numbers*/(:audiences)))
      ORDER BY mention.weight DESC, mention.memory_id DESC LIMIT :fan
    ) AS found
  )
FROM json_each/*numbers*/(:nodes) AS node
