-- sentences that were forgotten, as keyed hashes: a text that repeats one is not remembered, until a person asks for it
CREATE TABLE memory_echo (
  hash BLOB PRIMARY KEY,
  created_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- Checksums of rows: see sealing.py. `columns` are those that a table's checksums are made of.
CREATE TABLE IF NOT EXISTS sealed_table (
  name TEXT PRIMARY KEY,
  columns TEXT NOT NULL
) STRICT, WITHOUT ROWID;
ALTER TABLE memory_audience ADD COLUMN row_seal INTEGER;
ALTER TABLE memory ADD COLUMN row_seal INTEGER;
ALTER TABLE memory_source ADD COLUMN row_seal INTEGER;
ALTER TABLE memory_statement ADD COLUMN row_seal INTEGER;
ALTER TABLE association ADD COLUMN row_seal INTEGER;
ALTER TABLE memory_pair ADD COLUMN row_seal INTEGER;
ALTER TABLE entity ADD COLUMN row_seal INTEGER;
ALTER TABLE mention ADD COLUMN row_seal INTEGER;
ALTER TABLE memory_change ADD COLUMN row_seal INTEGER;
ALTER TABLE memory_use ADD COLUMN row_seal INTEGER;
ALTER TABLE memory_upkeep ADD COLUMN row_seal INTEGER;
ALTER TABLE memory_tombstone ADD COLUMN row_seal INTEGER;
ALTER TABLE memory_aside ADD COLUMN row_seal INTEGER;
ALTER TABLE identity ADD COLUMN row_seal INTEGER;
ALTER TABLE memory_widened ADD COLUMN row_seal INTEGER;
ALTER TABLE space ADD COLUMN row_seal INTEGER;
ALTER TABLE vector ADD COLUMN row_seal INTEGER;
ALTER TABLE vector_block ADD COLUMN row_seal INTEGER;
ALTER TABLE memory_piece ADD COLUMN row_seal INTEGER;
ALTER TABLE word_block ADD COLUMN row_seal INTEGER;
ALTER TABLE memory_untold ADD COLUMN row_seal INTEGER;
ALTER TABLE memory_echo ADD COLUMN row_seal INTEGER;

-- Forgetting asks which audiences have no memory left; other indexes cover the other states.
CREATE INDEX memory_past ON memory (audience) WHERE state IN ('superseded', 'merged', 'forgotten');

-- The identity of a store, the marks of its log (progress.py), and the memory store that belongs to a buffer (pair.py).
CREATE TABLE IF NOT EXISTS store_mark (
  one INTEGER PRIMARY KEY CHECK (one = 1),
  id BLOB NOT NULL,
  marks INTEGER NOT NULL,
  memory BLOB
) STRICT;
INSERT OR IGNORE INTO store_mark (one, id, marks) VALUES (1, randomblob(16), 0);

-- Vector spaces of an endpoint are named by its address without a login. Their vectors stay, and are not computed again;
-- of two spaces that differ in the login alone, the second keeps a hash of its own.
UPDATE OR IGNORE space SET revision = without_logins(revision), weights_hash = digest(without_logins(revision), model)
WHERE revision LIKE '%://%@%' AND weights_hash = digest(revision, model);
UPDATE space SET revision = without_logins(revision), weights_hash = randomblob(16) WHERE revision LIKE '%://%@%';
