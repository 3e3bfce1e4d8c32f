-- name: keep
INSERT INTO note (name, text, until) VALUES (?1, ?2, ?3)
ON CONFLICT (name) DO UPDATE SET text = excluded.text, until = excluded.until

-- name: over
DELETE FROM note WHERE until <= ?1

-- name: read
SELECT text FROM note WHERE name = ?1 AND until > ?2
