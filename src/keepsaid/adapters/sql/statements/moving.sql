-- name: columns
SELECT t.name, c.name, c.pk FROM sqlite_schema AS t JOIN pragma_table_info(t.name) AS c
WHERE t.type = 'table' AND c.name <> 'row_seal' ORDER BY t.name, c.cid

-- name: first
SELECT /*columns*/ FROM /*table*/ ORDER BY /*key*/ LIMIT ?

-- name: next
SELECT /*columns*/ FROM /*table*/ WHERE (/*key*/) > (/*marks_of_key*/) ORDER BY /*key*/ LIMIT ?

-- name: insert
INSERT INTO /*table*/ (/*columns*/) VALUES (/*marks*/)

-- name: delete
DELETE FROM /*table*/ WHERE (/*key*/) = (/*marks_of_key*/)

-- name: any
SELECT EXISTS (SELECT 1 FROM /*table*/)

-- name: drop_blocks
DELETE FROM /*table*/

-- name: triggers
SELECT name, tbl_name, sql FROM sqlite_schema WHERE type = 'trigger'

-- name: drop_trigger
DROP TRIGGER /*name*/
