-- What SQLite has built in for a store of memories: how far the ids of a table have come.
CREATE VIEW sqlite_sequence AS
SELECT 'memory_piece' AS name, CASE WHEN is_called THEN last_value END AS seq FROM memory_piece_id_seq
UNION ALL
SELECT 'vector', CASE WHEN is_called THEN last_value END FROM vector_id_seq;
