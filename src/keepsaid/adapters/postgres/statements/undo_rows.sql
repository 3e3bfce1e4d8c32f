-- name: begin
SELECT set_config('keepsaid.undo', 'on', true)

-- name: end
SELECT set_config('keepsaid.undo', '', true)

-- name: recorded
SELECT place, verb, was, now FROM undo_row ORDER BY n DESC

-- name: clear
DELETE FROM undo_row

-- name: keys
SELECT attname FROM pg_index JOIN pg_attribute ON attrelid = indrelid AND attnum = ANY (indkey)
WHERE indrelid = CAST(CAST(?1 AS TEXT) AS regclass) AND indisprimary ORDER BY array_position(indkey, attnum)

-- name: undo_delete
INSERT INTO /*table*/ (/*columns*/)
SELECT /*columns*/ FROM jsonb_populate_record(CAST(NULL AS /*table*/), CAST(?1 AS jsonb)) AS given
ON CONFLICT DO NOTHING

-- name: undo_update
UPDATE /*table*/ SET /*changed*/
FROM jsonb_populate_record(CAST(NULL AS /*table*/), CAST(?1 AS jsonb)) AS given WHERE /*same*/

-- name: undo_insert
DELETE FROM /*table*/
USING jsonb_populate_record(CAST(NULL AS /*table*/), CAST(?1 AS jsonb)) AS given WHERE /*same*/
