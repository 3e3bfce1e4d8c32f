-- name: open_slot
INSERT INTO slot (id, lane_id, person, question, expected, options, anchor, opened_at, expires_at, state)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, 'open')

-- name: pending_of
SELECT id, state FROM slot WHERE lane_id = ?1 AND person = ?2 AND state = 'open'

-- name: slot_state
SELECT state FROM slot WHERE id = ?1 AND lane_id = ?2

-- name: end_slot
UPDATE slot SET state = ?2, reason = ?3, filled_by = ?4, value = ?5, ended_at = ?6 WHERE id = ?1

-- name: open_of_lane
SELECT id, state FROM slot WHERE lane_id = ?1 AND state = 'open'

-- name: slots
SELECT id, person, question, expected, options, anchor, opened_at, expires_at, state, filled_by, value, reason, ended_at
FROM slot WHERE lane_id = ?1 ORDER BY id DESC LIMIT ?2

-- name: open_slots
SELECT id, person, question, expected, options, anchor, opened_at, expires_at, state, filled_by, value, reason, ended_at
FROM slot WHERE lane_id = ?1 AND state = 'open' ORDER BY id
