-- name: stored_here
SELECT /*columns*/
FROM memory
WHERE (memory.key >= 'command:' AND memory.key < 'command;' OR memory.key >= 'turn:' AND memory.key < 'turn;'
  OR memory.key >= 'stated:' AND memory.key < 'stated;')
AND memory.speaker_id = :speaker AND CASE WHEN memory.metadata ->> '$.stored_in' IS NULL
  THEN memory.channel = :channel AND memory.account = :account AND memory.conversation = :conversation
  ELSE memory.metadata ->> '$.stored_in' = :here
END
AND (memory.state = 'active' OR memory.metadata ->> '$.undone.by' = :by)
ORDER BY memory.metadata ->> '$.undone.by' = :by DESC NULLS LAST,
  (SELECT max(said_at) FROM memory_statement AS statement WHERE statement.memory_id = memory.id) DESC NULLS LAST, memory.id DESC
LIMIT 1

-- name: replaced
SELECT memory.id FROM memory
WHERE memory.superseded_by = :id AND memory.state IN ('superseded', 'archived') ORDER BY memory.id

-- name: slot
SELECT memory.slot, memory.attribute FROM memory WHERE memory.id = :id

-- name: undo
UPDATE memory SET state = 'archived', pinned = 0,
  metadata = json_set(metadata, '$.undone', json_object('by', :by, 'restored', json(:restored)))
WHERE id = :id

-- name: restore
UPDATE memory SET superseded_by = NULL, valid_to = stated_to,
  state = CASE state WHEN 'superseded' THEN 'active' ELSE state END
WHERE superseded_by = :id AND state IN ('superseded', 'archived')

-- name: restored
SELECT /*columns*/
FROM json_each/*numbers*/(:ids) AS wanted CROSS JOIN memory ON memory.id = wanted.value
WHERE memory.state = 'active' AND /*heard*/ ORDER BY memory.id

-- name: undone_of
SELECT DISTINCT memory.id, memory.text, memory.slot, memory.value
FROM json_each/*texts*/(:refs) AS wanted CROSS JOIN memory_source AS source ON source.kind = 'message' AND source.ref = wanted.value
CROSS JOIN memory ON memory.id = source.memory_id
WHERE memory.state = 'archived' AND memory.metadata ->> '$.undone.by' IS NOT NULL

-- name: undone_slots
SELECT DISTINCT memory.slot, memory.attribute FROM json_each/*numbers*/(:ids) AS wanted CROSS JOIN memory ON memory.id = wanted.value
WHERE memory.slot IS NOT NULL AND memory.state = 'archived' AND memory.metadata ->> '$.undone.by' IS NOT NULL

-- name: remembered
SELECT /*columns*/
FROM memory
WHERE (
  memory.key >= 'turn:' || :turn || ':' AND memory.key < 'turn:' || :turn || ';'
  OR memory.key IN (SELECT value FROM json_each/*texts*/(:keys))
) AND memory.state IN ('active', 'superseded', 'archived') AND memory.metadata ->> '$.undone.by' IS NULL AND /*heard*/
ORDER BY memory.id
