-- name: hold
SELECT pg_advisory_lock(?1)

-- name: no_limits
SET idle_in_transaction_session_timeout TO 0

-- name: disable_triggers
ALTER TABLE /*table*/ DISABLE TRIGGER USER

-- name: enable_triggers
ALTER TABLE /*table*/ ENABLE TRIGGER USER

-- name: identities
SELECT CAST(t.relname AS TEXT), CAST(c.attname AS TEXT)
FROM pg_class AS t JOIN pg_attribute AS c ON c.attrelid = t.oid AND c.attidentity = 'd'
WHERE t.relnamespace = CAST(current_schema AS regnamespace) AND t.relkind = 'r'

-- name: continue
SELECT setval(pg_get_serial_sequence('/*table*/', '/*column*/'), max(/*column*/)) FROM /*table*/

-- name: tables
SELECT CAST(relname AS TEXT) FROM pg_class
WHERE relnamespace = CAST(current_schema AS regnamespace) AND relkind = 'r' AND relhastriggers
