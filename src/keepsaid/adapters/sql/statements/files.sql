-- name: due
SELECT file.message_id, file.n, file.fence, lane.channel, lane.account, lane.conversation, file.name, file.kind, file.ref,
  file.size, file.attempts, message.lane_id, message.number
FROM file JOIN message ON message.id = file.message_id JOIN lane ON lane.id = message.lane_id
WHERE file.state = 'waiting' AND file.next_at <= ?1 ORDER BY file.next_at LIMIT ?2

-- name: batch_state
SELECT state FROM (
  SELECT state, last FROM batch WHERE lane_id = ?1 AND first <= ?2 ORDER BY first DESC LIMIT 1
) AS found WHERE last >= ?2

-- name: take
UPDATE file SET fence = fence + 1, attempts = attempts + 1, next_at = ?3 WHERE message_id = ?1 AND n = ?2

-- name: recover
UPDATE file SET fence = fence + 1, next_at = ?1 WHERE state = 'waiting' AND next_at > ?1 AND ref <> ?2

-- name: awaited
SELECT n, fence, state FROM file
WHERE message_id = ?1 AND ref = ?2 AND (state = 'waiting' OR state = 'left' AND reason = ?3) ORDER BY n

-- name: take_awaited
UPDATE file SET state = ?3, fence = fence + 1, next_at = ?4, reason = '' WHERE message_id = ?1 AND n = ?2

-- name: keep_brought
UPDATE file SET ref = ?3, next_at = 0, attempts = 0 WHERE message_id = ?1 AND n = ?2

-- name: held
SELECT state FROM file WHERE message_id = ?1 AND n = ?2 AND fence = ?3 AND state = 'waiting'

-- name: keep_piece
INSERT INTO file_piece (message_id, n, piece, content) VALUES (?1, ?2, ?3, ?4)
ON CONFLICT (message_id, n, piece) DO UPDATE SET content = excluded.content

-- name: cut_pieces
DELETE FROM file_piece WHERE message_id = ?1 AND n = ?2 AND piece >= ?3

-- name: keep
UPDATE file SET state = ?3, kind = ?4, size = ?5, words = ?6, reason = ?7 WHERE message_id = ?1 AND n = ?2

-- name: leave
UPDATE file SET state = ?3, reason = ?4 WHERE message_id = ?1 AND n = ?2

-- name: put_off
UPDATE file SET next_at = ?3, reason = ?4 WHERE message_id = ?1 AND n = ?2

-- name: add_words
UPDATE message SET text = ?2, seal = ?3 WHERE id = ?1 AND forgotten_at IS NULL

-- name: left_of
WITH RECURSIVE /*part of_batch*/
SELECT file.message_id, file.n, file.state FROM walk CROSS JOIN file ON file.message_id = walk.id
WHERE file.state = 'left' AND file.reason = ?2

-- name: want
UPDATE file SET state = ?3, reason = '', next_at = 0 WHERE message_id = ?1 AND n = ?2

-- name: forget_files
DELETE FROM file WHERE message_id = ?

-- name: forget_pieces
DELETE FROM file_piece WHERE message_id = ?

-- name: next_due
SELECT min(next_at) FROM file WHERE state = 'waiting'

-- name: of_messages
SELECT message_id, n, name, kind, size, state, reason, words FROM file
WHERE message_id IN (SELECT value FROM carray(?1)) ORDER BY message_id, n

-- name: one
SELECT file.message_id, n, name, kind, size, state, reason, words, lane.channel, lane.account, lane.conversation, lane.key
FROM file JOIN message ON message.id = file.message_id JOIN lane ON lane.id = message.lane_id
WHERE file.message_id = ?1 AND n = ?2

-- name: pieces
SELECT content FROM file_piece WHERE message_id = ?1 AND n = ?2 ORDER BY piece

-- name: payload
SELECT message.payload FROM message JOIN lane ON lane.id = message.lane_id
WHERE message.provider_id = ?1 AND lane.channel = ?2 AND lane.account = ?3 ORDER BY message.id DESC LIMIT 1
