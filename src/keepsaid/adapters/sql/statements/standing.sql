-- name: personalities
SELECT scope, text, set_at, set_by FROM personality WHERE scope IN (SELECT value FROM json_each/*texts*/(?1))

-- name: set_personality
INSERT INTO personality (scope, text, set_at, set_by) VALUES (?1, ?2, ?3, ?4)
ON CONFLICT (scope) DO UPDATE SET text = excluded.text, set_at = excluded.set_at, set_by = excluded.set_by

-- name: reset_personality
DELETE FROM personality WHERE scope = ?1

-- name: calibrations
SELECT model, estimated, reported FROM calibration ORDER BY model

-- name: calibration
SELECT model, estimated, reported FROM calibration WHERE model = ?1

-- name: calibrate
INSERT INTO calibration (model, estimated, reported) VALUES (?1, ?2, ?3)
ON CONFLICT (model) DO UPDATE SET estimated = excluded.estimated, reported = excluded.reported
