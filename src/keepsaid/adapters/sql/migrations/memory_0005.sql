-- Memories mention people and things by name. What is there is read for names after this, some memories at a time.
INSERT INTO reindex (one, reached, upto) SELECT 1, 0, coalesce(max(id), 0) FROM memory WHERE true
ON CONFLICT (one) DO UPDATE SET reached = excluded.reached, upto = excluded.upto;
