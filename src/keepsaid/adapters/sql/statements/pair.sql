-- name: mark
SELECT id, memory FROM store_mark

-- name: join
UPDATE store_mark SET memory = ?

-- name: stored_buffer
SELECT EXISTS (SELECT 1 FROM message) OR EXISTS (SELECT 1 FROM message_key) OR EXISTS (SELECT 1 FROM transcript)
  OR EXISTS (SELECT 1 FROM reply) OR EXISTS (SELECT 1 FROM task) OR EXISTS (SELECT 1 FROM schedule)

-- name: stored_memory
SELECT EXISTS (SELECT 1 FROM memory) OR EXISTS (SELECT 1 FROM identity) OR EXISTS (SELECT 1 FROM memory_tombstone)

-- name: undoing
SELECT id FROM forgetting WHERE state = 'restoring'

-- name: forgetting_again
SELECT id FROM forgetting WHERE state = 'requested' AND how = 'restored'
