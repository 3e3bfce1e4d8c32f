CREATE TABLE memory (
  id INTEGER PRIMARY KEY,
  key TEXT NOT NULL UNIQUE,
  kind TEXT NOT NULL,
  state TEXT NOT NULL,
  scope TEXT NOT NULL,
  trust TEXT NOT NULL,
  derived INTEGER NOT NULL DEFAULT 0,
  lane_key TEXT,
  conversation TEXT,
  account TEXT,
  channel TEXT,
  said_at INTEGER NOT NULL,
  valid_from INTEGER,
  valid_to INTEGER,
  recorded_at INTEGER NOT NULL,
  superseded_by INTEGER,
  importance REAL NOT NULL,
  confidence REAL NOT NULL DEFAULT 1.0,
  last_access_at INTEGER,
  access_count INTEGER NOT NULL DEFAULT 0,
  evidence_count INTEGER NOT NULL DEFAULT 1,
  pinned INTEGER NOT NULL DEFAULT 0,
  last_decayed_at INTEGER,
  content_hash BLOB NOT NULL,
  subject TEXT NOT NULL DEFAULT '',
  attribute TEXT NOT NULL DEFAULT '',
  value TEXT NOT NULL DEFAULT '',
  speaker TEXT NOT NULL DEFAULT '',
  -- last, so that a long text never stands between a row's start and what every read filters by
  text TEXT NOT NULL
) STRICT;
CREATE INDEX memory_newest ON memory (said_at DESC, id DESC) WHERE state = 'active';
CREATE INDEX memory_kind ON memory (kind, said_at DESC, id DESC) WHERE state = 'active';
CREATE INDEX memory_content ON memory (content_hash);
CREATE INDEX memory_subject ON memory (subject, attribute) WHERE subject <> '';

CREATE TABLE memory_source (
  memory_id INTEGER NOT NULL REFERENCES memory (id),
  n INTEGER NOT NULL,
  kind TEXT NOT NULL,
  ref TEXT NOT NULL,
  PRIMARY KEY (memory_id, n)
) STRICT, WITHOUT ROWID;
CREATE INDEX memory_source_ref ON memory_source (kind, ref);

CREATE TABLE association (
  source_id INTEGER NOT NULL REFERENCES memory (id),
  target_id INTEGER NOT NULL REFERENCES memory (id),
  relation TEXT NOT NULL,
  weight REAL NOT NULL DEFAULT 1.0,
  created_at INTEGER NOT NULL,
  PRIMARY KEY (source_id, target_id, relation)
) STRICT, WITHOUT ROWID;
CREATE INDEX association_strongest ON association (source_id, weight DESC, target_id);
CREATE INDEX association_target ON association (target_id);

CREATE TABLE memory_change (
  seq INTEGER PRIMARY KEY,
  memory_id INTEGER NOT NULL,
  what TEXT NOT NULL,
  at INTEGER NOT NULL
) STRICT;

CREATE TABLE memory_tombstone (
  hash BLOB PRIMARY KEY,
  created_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE person (
  id TEXT PRIMARY KEY,
  name TEXT NOT NULL DEFAULT '',
  created_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE identity (
  channel TEXT NOT NULL,
  account TEXT NOT NULL,
  sender TEXT NOT NULL,
  person TEXT NOT NULL REFERENCES person (id),
  PRIMARY KEY (channel, account, sender)
) STRICT, WITHOUT ROWID;
CREATE INDEX identity_person ON identity (person);

CREATE TABLE space (
  id INTEGER PRIMARY KEY,
  model TEXT NOT NULL,
  revision TEXT NOT NULL,
  dimension INTEGER NOT NULL,
  weights_hash BLOB NOT NULL,
  created_at INTEGER NOT NULL,
  UNIQUE (model, revision, dimension, weights_hash)
) STRICT;

CREATE TABLE vector (
  memory_id INTEGER NOT NULL REFERENCES memory (id),
  space INTEGER NOT NULL REFERENCES space (id),
  vector BLOB NOT NULL,
  PRIMARY KEY (space, memory_id)
) STRICT;
CREATE INDEX vector_memory ON vector (memory_id);

CREATE VIEW memory_searchable AS
SELECT id, text AS body, speaker FROM memory WHERE state IN ('active', 'superseded');

CREATE VIRTUAL TABLE memory_text USING fts5 (
  body,
  speaker,
  content = 'memory_searchable',
  content_rowid = 'id',
  tokenize = 'porter unicode61'
);
INSERT INTO memory_text (memory_text, rank) VALUES ('secure-delete', 1);

CREATE VIRTUAL TABLE memory_term USING fts5vocab (memory_text, row);

CREATE TRIGGER memory_text_insert AFTER INSERT ON memory WHEN new.state IN ('active', 'superseded') BEGIN
  INSERT INTO memory_text (rowid, body, speaker) VALUES (new.id, new.text, new.speaker);
END;

CREATE TRIGGER memory_text_delete AFTER DELETE ON memory WHEN old.state IN ('active', 'superseded') BEGIN
  INSERT INTO memory_text (memory_text, rowid, body, speaker) VALUES ('delete', old.id, old.text, old.speaker);
END;

CREATE TRIGGER memory_text_update AFTER UPDATE OF state, text, speaker ON memory BEGIN
  INSERT INTO memory_text (memory_text, rowid, body, speaker)
  SELECT 'delete', old.id, old.text, old.speaker WHERE old.state IN ('active', 'superseded');
  INSERT INTO memory_text (rowid, body, speaker)
  SELECT new.id, new.text, new.speaker WHERE new.state IN ('active', 'superseded');
END;
