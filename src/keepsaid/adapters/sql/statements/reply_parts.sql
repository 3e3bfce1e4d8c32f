-- name: parts
SELECT n, body, state, provider_id, doubted FROM reply_part WHERE reply_id = ? ORDER BY n

-- name: keep
INSERT INTO reply_part (reply_id, n, state, body) VALUES /*rows*/

-- name: move
UPDATE reply_part SET state = ?3, provider_id = ?4 WHERE reply_id = ?1 AND n = ?2

-- name: state
SELECT state FROM reply_part WHERE reply_id = ? AND n = ?

-- name: cut_short
UPDATE reply_part SET state = ?2, doubted = max(doubted, ?3) WHERE reply_id = ?1 AND state = 'sending'

-- name: note_undelivered
UPDATE reply SET detail = ?4
WHERE channel = ?2 AND account = ?3 AND state = 'sent' AND id IN (
  SELECT id FROM reply WHERE provider_id = ?1
  UNION ALL
  SELECT reply_id FROM reply_part WHERE provider_id = ?1 AND state = 'sent'
)

-- name: empty
UPDATE reply_part SET body = '' WHERE reply_id = ? AND body <> ''

-- name: forget
UPDATE reply_part SET body = '', provider_id = NULL WHERE reply_id = ?
