-- name: same
SELECT other.name FROM identity AS one CROSS JOIN identity AS other ON other.person = one.person
WHERE one.name = ?1 ORDER BY other.name

-- name: persons
SELECT identity.person, identity.name
FROM json_each/*texts*/(?1) AS wanted CROSS JOIN identity ON identity.name = wanted.value
ORDER BY wanted.rowid

-- name: together
SELECT other.name
FROM json_each/*texts*/(?1) AS wanted
CROSS JOIN identity AS one ON one.name = wanted.value
CROSS JOIN identity AS other ON other.person = one.person

-- name: absorb
UPDATE identity SET person = :person
WHERE person <> :person AND person IN (SELECT person FROM identity WHERE name IN (SELECT value FROM json_each/*texts*/(:names)))

-- name: join
INSERT INTO identity (name, person, joined_at, joined_by)
SELECT wanted.value, :person, :at, :by FROM json_each/*texts*/(:names) AS wanted WHERE true
ON CONFLICT DO NOTHING

-- name: person
SELECT person, name, joined_at, joined_by FROM identity WHERE person = ?1 ORDER BY name

-- name: everybody
SELECT person, name, joined_at, joined_by FROM identity ORDER BY person, name

-- name: leave
DELETE FROM identity WHERE name = ?1 RETURNING person

-- name: alone
DELETE FROM identity WHERE person = ?1 AND 1 = (SELECT count(*) FROM identity WHERE person = ?1)

-- name: seen
WITH RECURSIVE spoke (name, n) AS (
  SELECT min(speaker_id), 1 FROM memory WHERE speaker_id <> '' AND state <> 'forgotten'
  UNION ALL
  SELECT (
    SELECT min(speaker_id) FROM memory WHERE speaker_id > spoke.name AND speaker_id <> '' AND state <> 'forgotten'
  ), n + 1
  FROM spoke WHERE spoke.name IS NOT NULL AND n < :limit
)
SELECT
  spoke.name,
  (
    SELECT speaker FROM memory WHERE speaker_id = spoke.name AND speaker_id <> '' AND state <> 'forgotten'
    ORDER BY said_at DESC, id DESC LIMIT 1
  ),
  (SELECT count(*) FROM memory WHERE speaker_id = spoke.name AND speaker_id <> '' AND state <> 'forgotten'),
  (SELECT max(said_at) FROM memory WHERE speaker_id = spoke.name AND speaker_id <> '' AND state <> 'forgotten')
FROM spoke WHERE spoke.name IS NOT NULL LIMIT :limit
