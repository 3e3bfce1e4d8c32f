-- works with: 5
-- Files that a turn made, or sends with its reply; what has a source has its bytes under that handle.
CREATE TABLE turn_file (
  turn_id INTEGER NOT NULL,
  n INTEGER NOT NULL,
  name TEXT NOT NULL,
  kind TEXT NOT NULL,
  size INTEGER NOT NULL,
  attached INTEGER NOT NULL,
  source TEXT NOT NULL DEFAULT '',
  row_seal INTEGER,
  PRIMARY KEY (turn_id, n)
) STRICT, WITHOUT ROWID;
CREATE TABLE turn_file_piece (
  turn_id INTEGER NOT NULL,
  n INTEGER NOT NULL,
  piece INTEGER NOT NULL,
  content BLOB NOT NULL,
  row_seal INTEGER,
  PRIMARY KEY (turn_id, n, piece)
) STRICT;
CREATE TRIGGER turn_file_gone AFTER DELETE ON turn BEGIN
  DELETE FROM turn_file WHERE turn_id = old.id;
  DELETE FROM turn_file_piece WHERE turn_id = old.id;
END;
