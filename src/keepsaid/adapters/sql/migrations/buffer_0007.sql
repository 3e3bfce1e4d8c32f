-- works with: 5
-- People who were sent a code or let in, by channel and account; a code that holds finds one of them.
CREATE TABLE pairing (
  channel TEXT NOT NULL,
  account TEXT NOT NULL,
  sender TEXT NOT NULL,
  state TEXT NOT NULL,
  code TEXT,
  message_id INTEGER,
  at INTEGER NOT NULL,
  until INTEGER NOT NULL,
  row_seal INTEGER,
  PRIMARY KEY (channel, account, sender)
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX pairing_code ON pairing (code) WHERE code IS NOT NULL;
-- Messages of groups whose medium says that they are to the agent.
CREATE TABLE addressed (
  message_id INTEGER PRIMARY KEY
) STRICT;
CREATE TRIGGER addressed_gone AFTER DELETE ON message BEGIN
  DELETE FROM addressed WHERE message_id = old.id;
END;
