-- Texts are found by the stems of their language too. What is there gets them after this, some memories at a time.
CREATE TABLE IF NOT EXISTS reindex (
  one INTEGER PRIMARY KEY CHECK (one = 1),
  reached INTEGER NOT NULL,
  upto INTEGER NOT NULL
) STRICT;
INSERT INTO reindex (one, reached, upto) SELECT 1, 0, coalesce(max(id), 0) FROM memory WHERE true
ON CONFLICT (one) DO UPDATE SET reached = excluded.reached, upto = excluded.upto;
