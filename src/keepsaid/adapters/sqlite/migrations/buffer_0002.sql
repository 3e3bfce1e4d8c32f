-- The bodies of signed deliveries, by which the same body under another delivery id is a duplicate.
CREATE TABLE body_key (
  key BLOB PRIMARY KEY,
  message_id INTEGER NOT NULL,
  until INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX body_key_until ON body_key (until);

CREATE TABLE redelivery (
  message_id INTEGER NOT NULL,
  external_id TEXT NOT NULL,
  event TEXT NOT NULL,
  at INTEGER NOT NULL,
  PRIMARY KEY (message_id, external_id)
) STRICT, WITHOUT ROWID;
CREATE TRIGGER message_gone_redelivered AFTER DELETE ON message BEGIN
  DELETE FROM redelivery WHERE message_id = old.id;
END;
CREATE TRIGGER message_forgotten_redelivered AFTER UPDATE OF forgotten_at ON message
WHEN new.forgotten_at IS NOT NULL BEGIN
  DELETE FROM redelivery WHERE message_id = new.id;
END;
