-- name: first
SELECT message_id FROM body_key WHERE key = ?1 AND until > ?2

-- name: keep
INSERT INTO body_key (key, message_id, until) VALUES (?1, ?2, ?3)
ON CONFLICT (key) DO UPDATE SET message_id = excluded.message_id, until = excluded.until

-- name: expire
DELETE FROM body_key WHERE key IN (SELECT key FROM body_key WHERE until <= ?1 ORDER BY until LIMIT ?2)

-- name: note
INSERT INTO redelivery (message_id, external_id, event, at)
SELECT ?1, ?2, ?3, ?4
WHERE (SELECT count(*) FROM redelivery WHERE message_id = ?1) < ?5
  AND EXISTS (SELECT 1 FROM message WHERE id = ?1 AND external_id IS DISTINCT FROM ?2 AND forgotten_at IS NULL)
ON CONFLICT (message_id, external_id) DO NOTHING

-- name: redeliveries
SELECT message_id, external_id, event, at FROM redelivery
WHERE message_id IN (SELECT value FROM carray(?)) ORDER BY at, message_id, external_id
