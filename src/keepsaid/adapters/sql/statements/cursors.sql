-- name: keep
INSERT INTO cursor (channel, account, name, value, at) VALUES (?1, ?2, ?3, ?4, ?5)
ON CONFLICT (channel, account, name) DO UPDATE SET value = excluded.value, at = excluded.at

-- name: of_account
SELECT name, value FROM cursor WHERE channel = ?1 AND account = ?2
