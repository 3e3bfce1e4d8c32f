-- works with: 5
-- The parts of a reply that is longer than its medium takes in one message; `body` is what is sent, empty once the
-- reply is settled for good.
CREATE TABLE reply_part (
  reply_id INTEGER NOT NULL REFERENCES reply (id),
  n INTEGER NOT NULL,
  state TEXT NOT NULL,
  body TEXT NOT NULL,
  doubted INTEGER NOT NULL DEFAULT 0,
  provider_id TEXT,
  row_seal INTEGER,
  PRIMARY KEY (reply_id, n)
) STRICT, WITHOUT ROWID;
CREATE INDEX reply_part_named ON reply_part (provider_id) WHERE provider_id IS NOT NULL;
CREATE TRIGGER reply_part_gone AFTER DELETE ON reply BEGIN
  DELETE FROM reply_part WHERE reply_id = old.id;
END;
