-- works with: 5
-- What came with messages, and whether its bytes are kept; `ref` is where its channel has it.
CREATE TABLE file (
  message_id INTEGER NOT NULL,
  n INTEGER NOT NULL,
  state TEXT NOT NULL,
  name TEXT NOT NULL,
  kind TEXT NOT NULL,
  size INTEGER NOT NULL,
  ref TEXT NOT NULL,
  reason TEXT NOT NULL DEFAULT '',
  words TEXT NOT NULL DEFAULT '',
  fence INTEGER NOT NULL DEFAULT 0,
  attempts INTEGER NOT NULL DEFAULT 0,
  next_at INTEGER NOT NULL DEFAULT 0,
  row_seal INTEGER,
  PRIMARY KEY (message_id, n)
) STRICT, WITHOUT ROWID;
CREATE INDEX file_waiting ON file (next_at) WHERE state = 'waiting';
CREATE TABLE file_piece (
  message_id INTEGER NOT NULL,
  n INTEGER NOT NULL,
  piece INTEGER NOT NULL,
  content BLOB NOT NULL,
  row_seal INTEGER,
  PRIMARY KEY (message_id, n, piece)
) STRICT;
CREATE TRIGGER file_gone AFTER DELETE ON message BEGIN
  DELETE FROM file WHERE message_id = old.id;
  DELETE FROM file_piece WHERE message_id = old.id;
END;
