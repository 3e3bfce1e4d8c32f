-- name: raise
UPDATE store_mark SET marks = marks + 1 RETURNING id, marks

-- name: reached
SELECT id, marks FROM store_mark
