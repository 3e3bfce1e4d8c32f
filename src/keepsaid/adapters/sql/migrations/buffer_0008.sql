-- works with: 5
-- How far the messages of an account have been read, on each strand of its provider, in the words of the provider.
CREATE TABLE cursor (
  channel TEXT NOT NULL,
  account TEXT NOT NULL,
  name TEXT NOT NULL,
  value TEXT NOT NULL,
  at INTEGER NOT NULL,
  row_seal INTEGER,
  PRIMARY KEY (channel, account, name)
) STRICT, WITHOUT ROWID;
