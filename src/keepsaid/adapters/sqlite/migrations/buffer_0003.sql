-- Conversations whose messages wait without an answer until a person resumes them.
CREATE TABLE paused_conversation (
  channel TEXT NOT NULL,
  account TEXT NOT NULL,
  conversation TEXT NOT NULL,
  since INTEGER NOT NULL,
  row_seal INTEGER,
  PRIMARY KEY (channel, account, conversation)
) STRICT, WITHOUT ROWID;
