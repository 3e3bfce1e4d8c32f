-- name: tables
SELECT count(*) FROM sqlite_master WHERE type = 'table' AND name IN ('sessions', 'messages')

-- name: sessions
SELECT * FROM sessions ORDER BY id

-- name: messages
SELECT * FROM messages WHERE session_id = ? ORDER BY id
