-- Conversations whose messages wait without an answer until a person resumes them.
CREATE TABLE paused_conversation (
  channel TEXT NOT NULL,
  account TEXT NOT NULL,
  conversation TEXT NOT NULL,
  since INTEGER NOT NULL,
  row_seal INTEGER,
  PRIMARY KEY (channel, account, conversation)
) STRICT, WITHOUT ROWID;

-- What was said in incognito, by the numbers of its messages; the span that has no last number goes on.
CREATE TABLE incognito_span (
  lane_id INTEGER NOT NULL REFERENCES lane (id),
  first INTEGER NOT NULL,
  last INTEGER,
  row_seal INTEGER,
  PRIMARY KEY (lane_id, first)
) STRICT, WITHOUT ROWID;
ALTER TABLE session ADD COLUMN incognito INTEGER NOT NULL DEFAULT 0;
