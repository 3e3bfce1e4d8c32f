-- name: trigger_function
CREATE FUNCTION /*name*/() RETURNS trigger LANGUAGE plpgsql AS $trigger$ BEGIN /*body*/ RETURN NULL; END $trigger$

-- name: trigger
CREATE TRIGGER /*name*/ /*when*/ ON /*table*/ FOR EACH ROW /*condition*/ EXECUTE FUNCTION /*name*/()

-- name: undo_trigger
CREATE TRIGGER undo_/*table*/ AFTER INSERT OR UPDATE OR DELETE ON /*table*/ FOR EACH ROW
WHEN (current_setting('keepsaid.undo', true) = 'on') EXECUTE FUNCTION record_row()

-- name: undo_triggers
SELECT tgname FROM pg_trigger JOIN pg_class ON pg_class.oid = tgrelid
WHERE relnamespace = CAST(current_schema AS regnamespace) AND tgname LIKE 'undo\_%'

-- name: schema
CREATE SCHEMA IF NOT EXISTS /*name*/

-- name: lock
SELECT pg_advisory_lock(?1)

-- name: may_use
SELECT has_schema_privilege(CAST(?1 AS TEXT), 'USAGE')

-- name: may_make
SELECT CASE WHEN to_regnamespace(CAST(?1 AS TEXT)) IS NULL THEN has_database_privilege(current_database(), 'CREATE')
  ELSE has_schema_privilege(CAST(?1 AS TEXT), 'CREATE') END

-- name: tables
SELECT relname FROM pg_class WHERE relnamespace = to_regnamespace(CAST(?1 AS TEXT)) AND relkind = 'r'
