-- name: narrowed
SELECT memory.id
FROM json_each/*numbers*/(:ids) AS wanted CROSS JOIN memory ON memory.id = wanted.value
WHERE memory.state IN ('active', 'superseded') AND /*heard*/
AND (CAST(:kind AS TEXT) IS NULL OR memory.kind = :kind)
AND (CAST(:since AS INTEGER) IS NULL OR memory.said_at >= :since)
AND (CAST(:until AS INTEGER) IS NULL OR memory.said_at <= :until)
AND (CAST(:as_of AS INTEGER) IS NULL OR (
  coalesce(memory.valid_from, memory.said_at) <= :as_of AND (memory.valid_to IS NULL OR memory.valid_to > :as_of)
))
ORDER BY wanted.rowid

-- name: filling
SELECT memory.id
FROM json_each/*texts*/(:slots) AS wanted CROSS JOIN memory ON memory.slot = unhex(wanted.value)
WHERE memory.state = 'active' AND /*heard*/
ORDER BY coalesce(memory.valid_from, memory.said_at) DESC, memory.id DESC
LIMIT :limit

-- name: sources
SELECT /*columns*/
FROM json_each/*texts*/(:keys) AS wanted CROSS JOIN memory ON memory.key = wanted.value
WHERE memory.state IN ('active', 'superseded') AND /*heard*/
ORDER BY memory.said_at, memory.id
LIMIT :limit

-- name: around
WITH beside (id) AS (
  SELECT audience.id FROM memory_audience AS audience
  WHERE audience.laned = 1 AND audience.lane_key = :of_key AND audience.conversation = :of_conversation
  AND audience.account = :of_account AND audience.channel = :of_channel
)
SELECT /*columns*/
FROM memory
WHERE memory.id IN (
  SELECT id FROM (
    SELECT memory.id, memory.said_at FROM beside CROSS JOIN memory ON memory.id IN (
      SELECT before.id FROM memory AS before
      WHERE before.kind = 'episode' AND before.state IN ('active', 'superseded') AND before.audience = beside.id
      AND (before.said_at, before.id) < (:said_at, :id)
      ORDER BY before.said_at DESC, before.id DESC LIMIT :each
    )
    WHERE /*heard*/
    ORDER BY memory.said_at DESC, memory.id DESC LIMIT :each
  ) AS found
  UNION ALL
  SELECT id FROM (
    SELECT memory.id, memory.said_at FROM beside CROSS JOIN memory ON memory.id IN (
      SELECT after.id FROM memory AS after
      WHERE after.kind = 'episode' AND after.state IN ('active', 'superseded') AND after.audience = beside.id
      AND (after.said_at, after.id) >= (:said_at, :id)
      ORDER BY after.said_at, after.id LIMIT :each + 1
    )
    WHERE /*heard*/
    ORDER BY memory.said_at, memory.id LIMIT :each + 1
  ) AS found
)
ORDER BY memory.said_at, memory.id
