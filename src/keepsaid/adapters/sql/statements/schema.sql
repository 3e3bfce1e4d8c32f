-- name: create
CREATE TABLE IF NOT EXISTS keepsaid_schema (part TEXT PRIMARY KEY, version INTEGER NOT NULL) STRICT

-- name: version
SELECT version FROM keepsaid_schema WHERE part = ?

-- name: set_version
INSERT INTO keepsaid_schema (part, version) VALUES (?, ?) ON CONFLICT (part) DO UPDATE SET version = excluded.version

-- name: marks
SELECT part FROM keepsaid_schema WHERE part IN ('moving', 'copied', 'moved')

-- name: unmark
DELETE FROM keepsaid_schema WHERE part IN ('moving', 'copied', 'moved')
