-- name: keep_piece
INSERT INTO turn_file_piece (turn_id, n, piece, content) VALUES (?1, ?2, ?3, ?4)
ON CONFLICT (turn_id, n, piece) DO UPDATE SET content = excluded.content

-- name: cut_pieces
DELETE FROM turn_file_piece WHERE turn_id = ?1 AND n = ?2 AND piece >= ?3

-- name: keep
INSERT INTO turn_file (turn_id, n, name, kind, size, attached, source) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)
ON CONFLICT (turn_id, n) DO UPDATE SET name = excluded.name, kind = excluded.kind, size = excluded.size,
  attached = excluded.attached, source = excluded.source

-- name: forget
DELETE FROM turn_file WHERE turn_id = ?

-- name: forget_pieces
DELETE FROM turn_file_piece WHERE turn_id = ?

-- name: attached
SELECT turn_id, n, name, kind, size, attached, source FROM turn_file
WHERE turn_id IN (SELECT value FROM carray(?1)) AND attached = 1 ORDER BY turn_id, n

-- name: one
SELECT turn_file.turn_id, n, name, kind, size, attached, source, lane.channel, lane.account, lane.conversation, lane.key
FROM turn_file JOIN turn ON turn.id = turn_file.turn_id JOIN lane ON lane.id = turn.lane_id
WHERE turn_file.turn_id = ?1 AND n = ?2

-- name: pieces
SELECT content FROM turn_file_piece WHERE turn_id = ?1 AND n = ?2 ORDER BY piece
