-- name: columns
SELECT t.name, c.name, c.type, c.pk
FROM sqlite_schema AS t JOIN pragma_table_info(t.name) AS c
WHERE t.type = 'table' AND t.sql LIKE '%row_seal%'
ORDER BY t.name, c.cid

-- name: triggers
SELECT name FROM temp.sqlite_schema WHERE type = 'trigger'

-- name: drop_on_insert
DROP TRIGGER IF EXISTS temp.seal_insert_/*table*/

-- name: drop_on_update
DROP TRIGGER IF EXISTS temp.seal_update_/*table*/

-- name: on_insert
CREATE TEMP TRIGGER seal_insert_/*table*/ AFTER INSERT ON main./*table*/ WHEN new.row_seal IS NULL BEGIN
  UPDATE /*table*/ SET row_seal = seal_of(/*new*/) WHERE /*same*/;
END

-- name: on_update
CREATE TEMP TRIGGER seal_update_/*table*/ AFTER UPDATE OF /*names*/ ON main./*table*/
WHEN old.row_seal IS NULL OR old.row_seal = seal_of(/*old*/) BEGIN
  UPDATE /*table*/ SET row_seal = seal_of(/*new*/) WHERE /*same*/;
END

-- name: sealed_as
SELECT columns FROM sealed_table WHERE name = ?

-- name: note_sealed
INSERT INTO sealed_table (name, columns) VALUES (?1, ?2) ON CONFLICT DO UPDATE SET columns = ?2

-- name: count
SELECT count(*) FROM /*table*/

-- name: reseal
UPDATE /*table*/ SET row_seal = seal_of(/*values*/) WHERE row_seal IS NULL OR row_seal = seal_of(/*before_values*/)

-- name: altered
SELECT /*last*/ FROM /*table*/
WHERE /*before*/ /*last*/ IN (SELECT value FROM carray(?)) AND row_seal <> seal_of(/*values*/)

-- name: every_altered
SELECT /*shown*/, /*text*/ FROM /*table*/ WHERE row_seal <> seal_of(/*values*/)

-- name: states
SELECT /*last*/, state FROM /*table*/ WHERE state NOT IN (SELECT value FROM json_each/*texts*/(?))
