-- name: said
SELECT EXISTS (SELECT 1 FROM message WHERE id = ?1) OR EXISTS (SELECT 1 FROM transcript WHERE ref = 'message:' || ?1 AND ref <> '')

-- name: answered
SELECT EXISTS (SELECT 1 FROM turn WHERE id = ?1) OR EXISTS (SELECT 1 FROM transcript WHERE turn_id = ?1)

-- name: found
SELECT EXISTS (SELECT 1 FROM finding WHERE id = ?1)

-- name: shown
SELECT turn_id, memory_id FROM injection WHERE turn_id IN (SELECT value FROM carray(?1)) ORDER BY turn_id, rank
