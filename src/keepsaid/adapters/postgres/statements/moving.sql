-- name: columns
SELECT CAST(t.relname AS TEXT), CAST(c.attname AS TEXT), coalesce(key.place, 0)
FROM pg_class AS t JOIN pg_attribute AS c ON c.attrelid = t.oid AND c.attnum > 0 AND NOT c.attisdropped
LEFT JOIN pg_index AS i ON i.indrelid = t.oid AND i.indisprimary
LEFT JOIN LATERAL unnest(CAST(i.indkey AS smallint[])) WITH ORDINALITY AS key (attnum, place) ON key.attnum = c.attnum
WHERE t.relnamespace = CAST(current_schema AS regnamespace) AND t.relkind = 'r' AND c.attname <> 'row_seal'
ORDER BY t.relname, c.attnum
