-- name: keep_line
INSERT INTO journal (topic, payload, correlation_id, created_at, row_seal) VALUES (?, ?, ?, ?, ?)

-- name: subscribe
INSERT INTO subscription (name, topics, reached, since)
VALUES (?1, ?2, iif(?4 = 1, 0, (SELECT coalesce(max(id), 0) FROM journal)), ?3)
ON CONFLICT (name) DO UPDATE SET topics = ?2

-- name: pick_up
UPDATE delivery SET state = ?2, fence = 0 WHERE subscriber = ?1 AND state = 'processing'

-- name: unsubscribe
DELETE FROM subscription WHERE name = ?

-- name: drop_deliveries
DELETE FROM delivery WHERE subscriber = ?

-- name: subscriptions
SELECT name, topics, reached FROM subscription ORDER BY name

-- name: lines
SELECT id, topic, payload, correlation_id, created_at FROM journal WHERE id > ? ORDER BY id LIMIT ?

-- name: keep_deliveries
INSERT INTO delivery (subscriber, event_id, key, state, due_at) VALUES /*rows*/

-- name: reach
UPDATE subscription SET reached = ?2 WHERE name = ?1

-- name: overdue
SELECT id FROM delivery INDEXED BY delivery_held
WHERE subscriber = ?1 AND state = 'processing' AND held_until <= ?2

-- name: soon
UPDATE delivery SET due_at = ?2 WHERE subscriber = ?1 AND state = 'pending' AND due_at > ?2

-- name: put_back
UPDATE delivery SET state = ?2, fence = 0 WHERE id IN (SELECT value FROM carray(?1))

-- name: ready
SELECT id, event_id, attempts FROM delivery INDEXED BY delivery_pending
WHERE subscriber = ?1 AND state = 'pending' AND due_at <= ?2 AND NOT (
  key <> '' AND EXISTS (
    SELECT 1 FROM delivery AS earlier INDEXED BY delivery_open
    WHERE earlier.subscriber = ?1 AND earlier.key = delivery.key AND earlier.event_id < delivery.event_id
      AND earlier.state IN ('pending', 'processing')
  )
)
ORDER BY event_id LIMIT ?3

-- name: take
UPDATE delivery SET state = ?2, fence = ?3, held_until = ?4, attempts = attempts + 1
WHERE id IN (SELECT value FROM carray(?1))

-- name: told
SELECT id, topic, payload, correlation_id, created_at FROM journal WHERE id IN (SELECT value FROM carray(?)) ORDER BY id

-- name: held
SELECT id FROM delivery WHERE id IN (SELECT value FROM carray(?1)) AND subscriber = ?2 AND fence = ?3 AND state = 'processing'

-- name: finish
UPDATE delivery SET state = ?2, ended_at = ?3, error = '' WHERE id IN (SELECT value FROM carray(?1))

-- name: uncharge
UPDATE delivery SET state = ?2, fence = 0, attempts = attempts - 1 WHERE id IN (SELECT value FROM carray(?1))

-- name: settle
UPDATE delivery SET state = ?2, due_at = ?3, ended_at = ?4, error = ?5, fence = 0 WHERE id = ?1

-- name: state_of
SELECT state FROM delivery WHERE id = ?

-- name: decide
UPDATE delivery SET state = ?2, due_at = ?3, ended_at = ?4, attempts = 0 WHERE id = ?1

-- name: next_due
SELECT min(due_at) FROM delivery INDEXED BY delivery_pending WHERE subscriber = ?1 AND state = 'pending' AND due_at > ?2

-- name: happened
SELECT id, topic, payload, correlation_id, created_at FROM journal INDEXED BY journal_about
WHERE correlation_id = ?1 AND topic = ?2 AND correlation_id <> '' AND id > ?3 ORDER BY id LIMIT 1

-- name: newest_lines
SELECT id, topic, payload, correlation_id, created_at FROM journal ORDER BY id DESC LIMIT ?

-- name: deliveries
SELECT delivery.id, subscriber, event_id, coalesce(journal.topic, ''), key, state, attempts, due_at, error
FROM delivery LEFT JOIN journal ON journal.id = event_id / 1024
WHERE state IN (SELECT value FROM json_each/*texts*/(?1)) AND (?2 = '' OR subscriber = ?2)
ORDER BY event_id DESC, subscriber LIMIT ?3

-- name: subscribers
SELECT name, topics, (SELECT count(*) FROM journal WHERE journal.id > reached),
  (SELECT count(*) FROM delivery WHERE subscriber = name AND state = 'pending'),
  (SELECT count(*) FROM delivery WHERE subscriber = name AND state = 'processing'),
  (SELECT count(*) FROM delivery WHERE subscriber = name AND state = 'dead')
FROM subscription ORDER BY name

-- name: forget_deliveries
DELETE FROM delivery WHERE id IN (
  SELECT id FROM delivery INDEXED BY delivery_ended WHERE ended_at < ?1 AND state IN ('done', 'dismissed')
  ORDER BY ended_at LIMIT ?2
)

-- name: forget_lines
DELETE FROM journal WHERE id IN (
  SELECT id FROM journal WHERE created_at < ?1
    AND id < (SELECT max(id) FROM journal)
    AND id <= (SELECT coalesce(min(reached), 9223372036854775807) FROM subscription)
    AND NOT EXISTS (
      SELECT 1 FROM delivery WHERE delivery.event_id >= journal.id * 1024 AND delivery.event_id < (journal.id + 1) * 1024
    )
  ORDER BY id LIMIT ?2
)
