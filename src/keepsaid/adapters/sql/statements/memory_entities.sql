-- name: to_name
SELECT
  memory.id, memory.audience, memory.scope, memory.recorded_at,
  memory.text, memory.subject, memory.subject_id, memory.attribute, memory.value
FROM json_each/*numbers*/(:ids) AS wanted CROSS JOIN memory ON memory.id = wanted.value
WHERE memory.state IN ('active', 'superseded') AND memory.kind NOT IN ('bulletin', 'thread_state')
ORDER BY memory.id

-- name: speakers
SELECT DISTINCT audience, speaker, speaker_id FROM (
  SELECT wanted.value AS audience, said.speaker, said.speaker_id
  FROM json_each/*numbers*/(:audiences) AS wanted CROSS JOIN memory AS said
  WHERE said.id IN (
    SELECT id FROM memory
    WHERE audience = wanted.value AND kind = 'episode' AND state IN ('active', 'superseded')
    ORDER BY said_at DESC, id DESC LIMIT :last
  )
) AS found
WHERE speaker <> '' AND speaker_id <> ''

-- name: called
WITH RECURSIVE called (n, words, scope, entity_id, found) AS (
  SELECT
    wanted.key, wanted.value ->> 0, wanted.value ->> 1,
    (SELECT min(entity_id) FROM mention WHERE words = wanted.value ->> 0), 1
  FROM json_each(:names) AS wanted
  UNION ALL
  SELECT
    called.n, called.words, called.scope,
    (SELECT min(entity_id) FROM mention WHERE words = called.words AND entity_id > called.entity_id), called.found + 1
  FROM called WHERE called.entity_id IS NOT NULL AND called.found < :most
)
SELECT called.n, entity.key, EXISTS (
  SELECT 1 FROM (
    SELECT memory_id FROM mention
    WHERE words = called.words AND entity_id = called.entity_id ORDER BY memory_id DESC LIMIT :last
  ) AS mentioning
  CROSS JOIN memory ON memory.id = mentioning.memory_id WHERE memory.scope = called.scope
)
FROM called CROSS JOIN entity ON entity.id = called.entity_id
ORDER BY called.n, called.entity_id

-- name: called_first
SELECT DISTINCT wanted.key, entity.key
FROM json_each(:names) AS wanted
CROSS JOIN mention ON mention.words > wanted.value ->> 0 || ' ' AND mention.words < wanted.value ->> 0 || '!'
CROSS JOIN entity ON entity.id = mention.entity_id
CROSS JOIN memory ON memory.id = mention.memory_id
WHERE instr(wanted.value ->> 0, ' ') = 0 AND entity.key >= 'person:' AND entity.key < 'person;'
AND memory.scope = wanted.value ->> 1
LIMIT :most

-- name: rename
UPDATE entity SET key = :new WHERE key = :old AND NOT EXISTS (SELECT 1 FROM entity AS other WHERE other.key = :new)

-- name: add_entity
INSERT INTO entity (key, created_at) VALUES (:key, :at) ON CONFLICT DO NOTHING

-- name: mention
INSERT INTO mention (memory_id, entity_id, name, words, weight, created_at)
SELECT :memory_id, id, :name, :words, :weight, :at FROM entity WHERE key = :key
ON CONFLICT DO NOTHING

-- name: listed
SELECT entity.key, (/*part entity_names*/), count(*) AS memories, max(memory.said_at) AS last_at
FROM entity CROSS JOIN mention ON mention.entity_id = entity.id CROSS JOIN memory ON memory.id = mention.memory_id
WHERE entity.key >= :from AND entity.key < :to
AND memory.state IN ('active', 'superseded') AND /*heard*/
GROUP BY entity.id ORDER BY memories DESC, last_at DESC, entity.key LIMIT :limit

-- name: found
SELECT entity.key, (/*part entity_names*/), count(*) AS memories, max(memory.said_at) AS last_at
FROM (
  SELECT id FROM entity WHERE key = :key UNION SELECT entity_id FROM mention WHERE words = :words
) AS wanted
CROSS JOIN entity ON entity.id = wanted.id
CROSS JOIN mention ON mention.entity_id = entity.id CROSS JOIN memory ON memory.id = mention.memory_id
WHERE memory.state IN ('active', 'superseded') AND /*heard*/
GROUP BY entity.id ORDER BY memories DESC, last_at DESC, entity.key

-- name: mentioning
SELECT id FROM (
  SELECT DISTINCT memory.id, memory.said_at
FROM json_each/*texts*/(:keys) AS wanted
CROSS JOIN entity ON entity.key = wanted.value
CROSS JOIN mention ON mention.entity_id = entity.id
CROSS JOIN memory ON memory.id = mention.memory_id
WHERE memory.state IN ('active', 'superseded') AND iif(memory.kind = 'episode', 1, 0) = :said AND /*heard*/
) AS found
ORDER BY said_at DESC, id DESC LIMIT :limit

-- name: together
SELECT other.key, max(also.name), count(DISTINCT memory.id) AS memories
FROM json_each/*texts*/(:keys) AS wanted
CROSS JOIN entity ON entity.key = wanted.value
CROSS JOIN mention ON mention.entity_id = entity.id
CROSS JOIN memory ON memory.id = mention.memory_id
CROSS JOIN mention AS also ON also.memory_id = memory.id
CROSS JOIN entity AS other ON other.id = also.entity_id
WHERE memory.state IN ('active', 'superseded') AND /*heard*/
AND other.key NOT IN (SELECT value FROM json_each/*texts*/(:keys))
GROUP BY other.id ORDER BY memories DESC, other.key LIMIT :limit

-- name: both
SELECT key, (SELECT count(*) FROM mention WHERE entity_id = entity.id) FROM entity WHERE key IN (:into, :other)

-- name: move_mentions
UPDATE mention SET entity_id = (SELECT id FROM entity WHERE key = :into)
WHERE entity_id = (SELECT id FROM entity WHERE key = :other) AND NOT EXISTS (
  SELECT 1 FROM mention AS there
  WHERE there.memory_id = mention.memory_id AND there.entity_id = (SELECT id FROM entity WHERE key = :into)
)

-- name: drop_mentions
DELETE FROM mention WHERE entity_id = (SELECT id FROM entity WHERE key = :other)

-- name: drop_entity
DELETE FROM entity WHERE key = :other
