-- name: standing
SELECT begun_at, after, changed, archived FROM memory_upkeep WHERE task = ?1 AND ended_at IS NULL

-- name: stand
INSERT INTO memory_upkeep (task, begun_at, ended_at, after, changed, archived)
VALUES (:task, :begun_at, :ended_at, :after, :changed, :archived)
ON CONFLICT (task) DO UPDATE SET begun_at = excluded.begun_at, ended_at = excluded.ended_at, after = excluded.after,
  changed = excluded.changed, archived = excluded.archived

-- name: runs
SELECT task, begun_at, ended_at, changed, archived FROM memory_upkeep

-- name: memories
SELECT json_group_array(json_array(id, kind, fades, importance, since, last_decayed_at, uses)) FROM (
  SELECT
    id, kind, state = 'active' AND pinned = 0 AND corrects = 0 AND confirmed_at IS NULL AS fades, importance,
    max(recorded_at, said_at, coalesce(last_access_at, 0)) AS since, last_decayed_at,
    access_count + evidence_count - 1 AS uses
  FROM memory WHERE id > ?1 ORDER BY id LIMIT ?2
) AS found

-- name: fade
UPDATE memory SET importance = CAST(faded.value ->> 1 AS REAL), last_decayed_at = :at
FROM json_each(:faded) AS faded WHERE memory.id = CAST(faded.value ->> 0 AS INTEGER)

-- name: archive
UPDATE memory SET state = 'archived' WHERE id IN (SELECT value FROM json_each/*numbers*/(:ids))

-- name: former
SELECT former.id FROM space AS former CROSS JOIN space AS ours
WHERE ours.model = :model AND ours.revision = :revision AND ours.dimension = :dimension
AND ours.weights_hash = :weights_hash AND former.id <> ours.id
AND ours.reached >= (SELECT coalesce(max(seq), 0) FROM sqlite_sequence WHERE name = 'memory_piece')
ORDER BY former.id

-- name: vectors_of
SELECT count(*) FROM vector WHERE space = ?1

-- name: drop_vectors
DELETE FROM vector WHERE id IN (SELECT id FROM vector WHERE space = ?1 ORDER BY id LIMIT ?2)

-- name: drop_blocks
DELETE FROM vector_block WHERE space = ?1

-- name: drop_space
DELETE FROM space WHERE id = ?1

-- name: kinds
SELECT kind, count(*) FROM memory WHERE state <> 'forgotten' GROUP BY kind ORDER BY kind

-- name: states
SELECT state, count(*) FROM memory GROUP BY state ORDER BY state

-- name: scopes
SELECT iif(instr(scope, ':') > 0, substr(scope, 1, instr(scope, ':') - 1), scope) AS what, count(*)
FROM memory WHERE state <> 'forgotten' GROUP BY what ORDER BY what

-- name: counts
SELECT
  'sources', (SELECT count(*) FROM memory_source),
  'evidence', (SELECT coalesce(sum(evidence_count), 0) FROM memory WHERE kind <> 'episode' AND state <> 'forgotten'),
  'pieces', (SELECT count(*) FROM memory_piece),
  'spaces', (SELECT count(*) FROM space),
  'vectors', (SELECT count(*) FROM vector),
  'unembedded', (
    SELECT count(*) FROM memory_piece AS piece
    WHERE EXISTS (SELECT 1 FROM space) AND NOT EXISTS (
      SELECT 1 FROM vector WHERE vector.piece_id = piece.id
      AND vector.space = (SELECT id FROM space ORDER BY reached DESC, id DESC LIMIT 1)
    )
  ),
  'associations', (SELECT count(*) FROM association),
  'entities', (SELECT count(*) FROM entity),
  'mentions', (SELECT count(*) FROM mention),
  'tombstones', (SELECT count(*) FROM memory_tombstone)
