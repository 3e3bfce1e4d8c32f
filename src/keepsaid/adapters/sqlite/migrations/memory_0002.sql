-- sentences that were forgotten, as keyed hashes: a text that repeats one is not remembered, until a person asks for it
CREATE TABLE memory_echo (
  hash BLOB PRIMARY KEY,
  created_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
