-- who may hear a memory, once for all memories that the same listeners may hear; a lane only where it decides
CREATE TABLE memory_audience (
  id INTEGER PRIMARY KEY,
  scope TEXT NOT NULL,
  external INTEGER NOT NULL,
  bound INTEGER NOT NULL,
  laned INTEGER NOT NULL,
  channel TEXT NOT NULL,
  account TEXT NOT NULL,
  conversation TEXT NOT NULL,
  lane_key TEXT NOT NULL,
  row_seal INTEGER,
  UNIQUE (scope, external, bound, laned, channel, account, conversation, lane_key)
) STRICT;
CREATE INDEX memory_audience_lane ON memory_audience (conversation, lane_key) WHERE laned = 1;

CREATE TABLE memory (
  id INTEGER PRIMARY KEY,
  key TEXT NOT NULL UNIQUE,
  audience INTEGER NOT NULL REFERENCES memory_audience (id),
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
  -- until when it held: what it says itself (stated_to), or the start of what took its place, whichever is first
  valid_to INTEGER,
  stated_to INTEGER,
  recorded_at INTEGER NOT NULL,
  superseded_by INTEGER,
  importance REAL NOT NULL,
  confidence REAL NOT NULL DEFAULT 1.0,
  corrects INTEGER NOT NULL DEFAULT 0,
  confirmed_at INTEGER,
  last_access_at INTEGER,
  access_count INTEGER NOT NULL DEFAULT 0,
  evidence_count INTEGER NOT NULL DEFAULT 1,
  pinned INTEGER NOT NULL DEFAULT 0,
  last_decayed_at INTEGER,
  content_hash BLOB NOT NULL,
  subject TEXT NOT NULL DEFAULT '',
  attribute TEXT NOT NULL DEFAULT '',
  value TEXT NOT NULL DEFAULT '',
  -- a hash of subject and attribute, where one thing is said about someone
  slot BLOB,
  speaker TEXT NOT NULL DEFAULT '',
  -- who said it, whom it is about, and whose direct chat it was said in: persons, by the ids of their identities
  speaker_id TEXT NOT NULL DEFAULT '',
  subject_id TEXT NOT NULL DEFAULT '',
  chat_of TEXT NOT NULL DEFAULT '',
  version INTEGER NOT NULL DEFAULT 0,
  metadata TEXT NOT NULL DEFAULT '{}',
  -- last, so that a long text never stands between a row's start and what every read filters by
  text TEXT NOT NULL
,
  row_seal INTEGER) STRICT;
CREATE INDEX memory_newest ON memory (said_at DESC, id DESC) WHERE state = 'active';
CREATE INDEX memory_kind ON memory (kind, said_at DESC, id DESC) WHERE state = 'active';
CREATE INDEX memory_important ON memory (kind, importance DESC, said_at DESC, id DESC)
WHERE state = 'active' AND kind <> 'episode';
CREATE INDEX memory_known ON memory (audience, kind, importance DESC, said_at DESC, id DESC)
WHERE state = 'active' AND kind <> 'episode';
CREATE INDEX memory_archived ON memory (audience) WHERE state = 'archived';
CREATE INDEX memory_content ON memory (content_hash);
CREATE INDEX memory_beside ON memory (audience, said_at, id)
WHERE kind = 'episode' AND state IN ('active', 'superseded');
CREATE INDEX memory_slot ON memory (slot) WHERE slot IS NOT NULL;
CREATE INDEX memory_overdue ON memory (valid_to) WHERE state = 'active' AND valid_to IS NOT NULL;
CREATE INDEX memory_superseded ON memory (superseded_by) WHERE superseded_by IS NOT NULL;
CREATE INDEX memory_subject ON memory (subject, attribute) WHERE subject <> '';
CREATE INDEX memory_speaker ON memory (speaker_id, said_at DESC, id DESC)
WHERE speaker_id <> '' AND state <> 'forgotten';

CREATE TABLE memory_source (
  memory_id INTEGER NOT NULL REFERENCES memory (id),
  n INTEGER NOT NULL,
  kind TEXT NOT NULL,
  ref TEXT NOT NULL,
  -- the statement it is a source of, by its key; '' where the memory has but one
  statement TEXT NOT NULL DEFAULT '',
  row_seal INTEGER,
  PRIMARY KEY (memory_id, n)
) STRICT, WITHOUT ROWID;
CREATE INDEX memory_source_ref ON memory_source (kind, ref);

-- what was learned, by its key: each time that a memory was said; its words and its value stand in the memory alone
CREATE TABLE memory_statement (
  key TEXT PRIMARY KEY,
  memory_id INTEGER NOT NULL REFERENCES memory (id),
  start INTEGER NOT NULL,
  said_at INTEGER NOT NULL,
  ends INTEGER,
  corrects INTEGER NOT NULL,
  counted INTEGER NOT NULL
,
  row_seal INTEGER) STRICT, WITHOUT ROWID;
CREATE INDEX memory_statement_memory ON memory_statement (memory_id);

CREATE TABLE association (
  source_id INTEGER NOT NULL REFERENCES memory (id),
  target_id INTEGER NOT NULL REFERENCES memory (id),
  relation TEXT NOT NULL,
  weight REAL NOT NULL DEFAULT 1.0,
  created_at INTEGER NOT NULL,
  row_seal INTEGER,
  PRIMARY KEY (source_id, target_id, relation)
) STRICT, WITHOUT ROWID;
CREATE INDEX association_strongest ON association (source_id, weight DESC, target_id DESC, relation);
CREATE INDEX association_back ON association (target_id, weight DESC, source_id DESC, relation);

-- what was ruled of two memories that stand close, so that nobody is asked twice; by: the model, or nobody
CREATE TABLE memory_pair (
  newer INTEGER NOT NULL REFERENCES memory (id),
  older INTEGER NOT NULL REFERENCES memory (id),
  ruling TEXT NOT NULL,
  by TEXT NOT NULL,
  at INTEGER NOT NULL,
  row_seal INTEGER,
  PRIMARY KEY (newer, older)
) STRICT, WITHOUT ROWID;
CREATE INDEX memory_pair_older ON memory_pair (older);
CREATE INDEX memory_pair_asked ON memory_pair (at) WHERE by <> '';

CREATE TRIGGER pair_with_it AFTER DELETE ON memory BEGIN
  DELETE FROM memory_pair WHERE newer = old.id;
  DELETE FROM memory_pair WHERE older = old.id;
END;

CREATE TRIGGER pair_forgotten AFTER UPDATE OF state ON memory WHEN new.state = 'forgotten' BEGIN
  DELETE FROM memory_pair WHERE newer = old.id;
  DELETE FROM memory_pair WHERE older = old.id;
END;

-- people and things as nodes; what one is called stands in the memories that mention it, and is heard with them
CREATE TABLE entity (
  id INTEGER PRIMARY KEY,
  key TEXT NOT NULL UNIQUE,
  created_at INTEGER NOT NULL
,
  row_seal INTEGER) STRICT;

-- words: the stems of the name, by which a query finds it
CREATE TABLE mention (
  memory_id INTEGER NOT NULL REFERENCES memory (id),
  entity_id INTEGER NOT NULL REFERENCES entity (id),
  name TEXT NOT NULL,
  words TEXT NOT NULL,
  weight REAL NOT NULL DEFAULT 1.0,
  created_at INTEGER NOT NULL,
  row_seal INTEGER,
  PRIMARY KEY (memory_id, entity_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX mention_strongest ON mention (entity_id, weight DESC, memory_id DESC);
CREATE INDEX mention_named ON mention (words, entity_id);

CREATE TRIGGER memory_unrelated AFTER DELETE ON memory BEGIN
  DELETE FROM association WHERE source_id = old.id;
  DELETE FROM association WHERE target_id = old.id;
  DELETE FROM mention WHERE memory_id = old.id;
  DELETE FROM memory_statement WHERE memory_id = old.id;
  DELETE FROM memory WHERE superseded_by = old.id AND state = 'merged';
END;

CREATE TRIGGER memory_forgotten AFTER UPDATE OF state ON memory WHEN new.state = 'forgotten' BEGIN
  DELETE FROM association WHERE source_id = old.id;
  DELETE FROM association WHERE target_id = old.id;
  DELETE FROM mention WHERE memory_id = old.id;
  DELETE FROM memory_statement WHERE memory_id = old.id;
  DELETE FROM memory WHERE superseded_by = old.id AND state = 'merged';
END;

CREATE TABLE memory_change (
  seq INTEGER PRIMARY KEY,
  memory_id INTEGER NOT NULL,
  what TEXT NOT NULL,
  at INTEGER NOT NULL
,
  row_seal INTEGER) STRICT;

-- Turns whose uses of memories are counted, so that telling of one again counts nothing.
CREATE TABLE memory_use (
  turn_id INTEGER PRIMARY KEY,
  at INTEGER NOT NULL
,
  row_seal INTEGER) STRICT;

-- the last run of each task of maintenance, and where it stands while it is not over
CREATE TABLE memory_upkeep (
  task TEXT PRIMARY KEY,
  begun_at INTEGER NOT NULL,
  ended_at INTEGER,
  after INTEGER NOT NULL,
  changed INTEGER NOT NULL,
  archived INTEGER NOT NULL
,
  row_seal INTEGER) STRICT, WITHOUT ROWID;

CREATE TABLE memory_tombstone (
  hash BLOB PRIMARY KEY,
  created_at INTEGER NOT NULL
,
  row_seal INTEGER) STRICT, WITHOUT ROWID;

-- what forgettings that can be undone took away, as SQLite records changes; read by nothing else, and deleted in time
CREATE TABLE memory_aside (
  n INTEGER PRIMARY KEY AUTOINCREMENT,
  forgetting_id INTEGER NOT NULL,
  images BLOB NOT NULL
,
  row_seal INTEGER) STRICT;
CREATE INDEX memory_aside_of ON memory_aside (forgetting_id);

-- identities that were joined: who writes as one of them hears, in a direct chat, what is for the others of the person;
-- `name` is the channel, the account and the sender's id in one, or the owner
CREATE TABLE identity (
  name TEXT PRIMARY KEY,
  person TEXT NOT NULL,
  joined_at INTEGER NOT NULL,
  joined_by TEXT NOT NULL
,
  row_seal INTEGER) STRICT, WITHOUT ROWID;
CREATE INDEX identity_person ON identity (person, name);

-- who let a memory be heard more widely, and why
CREATE TABLE memory_widened (
  seq INTEGER PRIMARY KEY,
  memory_id INTEGER NOT NULL REFERENCES memory (id),
  before TEXT NOT NULL,
  after TEXT NOT NULL,
  by TEXT NOT NULL,
  reason TEXT NOT NULL,
  at INTEGER NOT NULL
,
  row_seal INTEGER) STRICT;
CREATE INDEX memory_widened_memory ON memory_widened (memory_id, seq);

CREATE TRIGGER widened_with_it AFTER DELETE ON memory BEGIN
  DELETE FROM memory_widened WHERE memory_id = old.id;
END;

CREATE TRIGGER widened_forgotten AFTER UPDATE OF state ON memory WHEN new.state = 'forgotten' BEGIN
  DELETE FROM memory_widened WHERE memory_id = old.id;
END;

CREATE TABLE space (
  id INTEGER PRIMARY KEY,
  model TEXT NOT NULL,
  revision TEXT NOT NULL,
  dimension INTEGER NOT NULL,
  weights_hash BLOB NOT NULL,
  -- every piece up to this id has its vector, or needs none
  reached INTEGER NOT NULL DEFAULT 0,
  created_at INTEGER NOT NULL,
  row_seal INTEGER,
  UNIQUE (model, revision, dimension, weights_hash)
) STRICT;

-- of a piece; ids only grow, so that who keeps vectors at hand knows which came since
CREATE TABLE vector (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  space INTEGER NOT NULL REFERENCES space (id),
  piece_id INTEGER NOT NULL,
  memory_id INTEGER NOT NULL,
  audience INTEGER NOT NULL,
  vector BLOB NOT NULL,
  row_seal INTEGER,
  UNIQUE (piece_id, space)
) STRICT;
CREATE INDEX vector_space ON vector (space);

-- the signs of the vectors of one space whose ids lie in one range of 1,024, read at once; made from them when there is time
CREATE TABLE vector_block (
  space INTEGER NOT NULL REFERENCES space (id),
  number INTEGER NOT NULL,
  vectors INTEGER NOT NULL,
  ids BLOB NOT NULL,
  memories BLOB NOT NULL,
  audiences BLOB NOT NULL,
  signs BLOB NOT NULL,
  row_seal INTEGER,
  PRIMARY KEY (space, number)
) STRICT;

-- what was forgotten is in no block from the same moment on
CREATE TRIGGER vector_delete AFTER DELETE ON vector BEGIN
  DELETE FROM vector_block WHERE space = old.space AND number = old.id / 1024;
END;

-- what is searched: a memory in one piece, or a long one in several; `terms` holds its words as numbers, and those of
-- what was said around it, which is found by its own pieces
CREATE TABLE memory_piece (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  memory_id INTEGER NOT NULL REFERENCES memory (id),
  n INTEGER NOT NULL,
  audience INTEGER NOT NULL,
  said_at INTEGER NOT NULL,
  own_terms INTEGER NOT NULL,
  mark_terms INTEGER NOT NULL,
  beside INTEGER NOT NULL,
  terms BLOB NOT NULL,
  speaker TEXT NOT NULL,
  said TEXT NOT NULL,
  grams TEXT NOT NULL,
  body TEXT NOT NULL,
  row_seal INTEGER,
  UNIQUE (memory_id, n)
) STRICT;
CREATE INDEX memory_piece_beside ON memory_piece (audience, said_at, memory_id, n) WHERE beside;

-- memories whose pieces are to be made anew; what changes one fills it, and empties it in the same transaction
CREATE TABLE memory_stale (
  memory_id INTEGER PRIMARY KEY
) STRICT;

-- in how many pieces a term stands, as it was counted when last there was time
CREATE TABLE term_df (
  term TEXT PRIMARY KEY,
  pieces INTEGER NOT NULL,
  visits INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE term_count (
  one INTEGER PRIMARY KEY CHECK (one = 1),
  pieces INTEGER NOT NULL,
  reached TEXT NOT NULL
) STRICT;
INSERT INTO term_count (one, pieces, reached) VALUES (1, 0, '');

CREATE VIRTUAL TABLE memory_text USING fts5 (
  body,
  speaker,
  said,
  grams,
  content = 'memory_piece',
  content_rowid = 'id',
  tokenize = 'porter unicode61'
);
INSERT INTO memory_text (memory_text, rank) VALUES ('secure-delete', 1);

CREATE VIRTUAL TABLE memory_term USING fts5vocab (memory_text, col);

-- pieces whose ids lie in one range of 16,384, and in 256 blocks where each of their words stands; made when there is
-- time, some blocks at a time, and read once the stretch is whole
CREATE TABLE word_stretch (
  number INTEGER PRIMARY KEY,
  pieces INTEGER NOT NULL,
  whole INTEGER NOT NULL
) STRICT;

-- id: 256 times the stretch, and the lowest 8 bits of the words' numbers
CREATE TABLE word_block (
  id INTEGER PRIMARY KEY,
  words BLOB NOT NULL
,
  row_seal INTEGER) STRICT;

-- with a piece that goes its stretch has no blocks any more
CREATE TRIGGER word_stretch_delete AFTER DELETE ON word_stretch BEGIN
  DELETE FROM word_block WHERE id >= old.number * 256 AND id < (old.number + 1) * 256;
END;

CREATE TRIGGER memory_piece_insert AFTER INSERT ON memory_piece BEGIN
  INSERT INTO memory_text (rowid, body, speaker, said, grams)
  VALUES (new.id, new.body, new.speaker, new.said, new.grams);
END;

CREATE TRIGGER memory_piece_delete AFTER DELETE ON memory_piece BEGIN
  INSERT INTO memory_text (memory_text, rowid, body, speaker, said, grams)
  VALUES ('delete', old.id, old.body, old.speaker, old.said, old.grams);
  DELETE FROM vector WHERE piece_id = old.id;
  DELETE FROM word_stretch WHERE number = old.id / 16384;
END;

CREATE TRIGGER memory_piece_update AFTER UPDATE OF body, speaker, said, grams ON memory_piece BEGIN
  INSERT INTO memory_text (memory_text, rowid, body, speaker, said, grams)
  VALUES ('delete', old.id, old.body, old.speaker, old.said, old.grams);
  INSERT INTO memory_text (rowid, body, speaker, said, grams)
  VALUES (new.id, new.body, new.speaker, new.said, new.grams);
  DELETE FROM word_stretch WHERE number = old.id / 16384;
END;

-- DO NOTHING, not OR IGNORE: of a trigger's own OR nothing is left in a statement that has a conflict clause itself
CREATE TRIGGER memory_insert AFTER INSERT ON memory BEGIN
  INSERT INTO memory_change (memory_id, what, at) VALUES (new.id, 'kept', new.recorded_at);
  INSERT INTO memory_stale (memory_id) VALUES (new.id) ON CONFLICT DO NOTHING;
  INSERT INTO memory_stale (memory_id) SELECT beside.id FROM (
    SELECT id FROM memory
    WHERE kind = 'episode' AND state IN ('active', 'superseded') AND audience = new.audience AND (said_at, id) > (new.said_at, new.id)
    ORDER BY said_at, id LIMIT 2
  ) AS beside WHERE new.kind = 'episode' ON CONFLICT DO NOTHING;
  INSERT INTO memory_stale (memory_id) SELECT beside.id FROM (
    SELECT id FROM memory
    WHERE kind = 'episode' AND state IN ('active', 'superseded') AND audience = new.audience AND (said_at, id) < (new.said_at, new.id)
    ORDER BY said_at DESC, id DESC LIMIT 1
  ) AS beside WHERE new.kind = 'episode' ON CONFLICT DO NOTHING;
END;

-- changed: its pieces and their vectors are made anew; holds: it only holds for another time, or was superseded
CREATE TRIGGER memory_changed AFTER UPDATE OF state, text, speaker, said_at, audience, valid_from, valid_to ON memory BEGIN
  INSERT INTO memory_change (memory_id, what, at) VALUES (new.id, iif(
    (old.text, old.speaker, old.said_at, old.audience) IS NOT (new.text, new.speaker, new.said_at, new.audience)
    OR (old.state IN ('active', 'superseded')) IS NOT (new.state IN ('active', 'superseded')), 'changed', 'holds'
  ), new.recorded_at);
END;

-- what can no longer be heard is not found from the same moment on, even before its neighbours are made anew
CREATE TRIGGER memory_update AFTER UPDATE OF state, text, speaker, said_at, audience ON memory
WHEN (old.text, old.speaker, old.said_at, old.audience) IS NOT (new.text, new.speaker, new.said_at, new.audience)
OR (old.state IN ('active', 'superseded')) IS NOT (new.state IN ('active', 'superseded')) BEGIN
  DELETE FROM memory_piece WHERE memory_id = old.id;
  INSERT INTO memory_stale (memory_id) VALUES (old.id) ON CONFLICT DO NOTHING;
  INSERT INTO memory_stale (memory_id) SELECT beside.id FROM (
    SELECT id FROM memory
    WHERE kind = 'episode' AND state IN ('active', 'superseded') AND audience = old.audience AND (said_at, id) > (old.said_at, old.id)
    ORDER BY said_at, id LIMIT 2
  ) AS beside WHERE old.kind = 'episode' ON CONFLICT DO NOTHING;
  INSERT INTO memory_stale (memory_id) SELECT beside.id FROM (
    SELECT id FROM memory
    WHERE kind = 'episode' AND state IN ('active', 'superseded') AND audience = old.audience AND (said_at, id) < (old.said_at, old.id)
    ORDER BY said_at DESC, id DESC LIMIT 1
  ) AS beside WHERE old.kind = 'episode' ON CONFLICT DO NOTHING;
  INSERT INTO memory_stale (memory_id) SELECT beside.id FROM (
    SELECT id FROM memory
    WHERE kind = 'episode' AND state IN ('active', 'superseded') AND audience = new.audience AND (said_at, id) > (new.said_at, new.id)
    ORDER BY said_at, id LIMIT 2
  ) AS beside WHERE new.kind = 'episode' ON CONFLICT DO NOTHING;
  INSERT INTO memory_stale (memory_id) SELECT beside.id FROM (
    SELECT id FROM memory
    WHERE kind = 'episode' AND state IN ('active', 'superseded') AND audience = new.audience AND (said_at, id) < (new.said_at, new.id)
    ORDER BY said_at DESC, id DESC LIMIT 1
  ) AS beside WHERE new.kind = 'episode' ON CONFLICT DO NOTHING;
END;

CREATE TRIGGER memory_delete AFTER DELETE ON memory BEGIN
  INSERT INTO memory_change (memory_id, what, at) VALUES (old.id, 'deleted', old.recorded_at);
  DELETE FROM memory_piece WHERE memory_id = old.id;
  DELETE FROM memory_stale WHERE memory_id = old.id;
  INSERT INTO memory_stale (memory_id) SELECT beside.id FROM (
    SELECT id FROM memory
    WHERE kind = 'episode' AND state IN ('active', 'superseded') AND audience = old.audience AND (said_at, id) > (old.said_at, old.id)
    ORDER BY said_at, id LIMIT 2
  ) AS beside WHERE old.kind = 'episode' ON CONFLICT DO NOTHING;
  INSERT INTO memory_stale (memory_id) SELECT beside.id FROM (
    SELECT id FROM memory
    WHERE kind = 'episode' AND state IN ('active', 'superseded') AND audience = old.audience AND (said_at, id) < (old.said_at, old.id)
    ORDER BY said_at DESC, id DESC LIMIT 1
  ) AS beside WHERE old.kind = 'episode' ON CONFLICT DO NOTHING;
END;

-- what happened to memories and is not in the journal of the operational store yet; episodes are told of there by their messages
CREATE TABLE memory_untold (
  n INTEGER PRIMARY KEY AUTOINCREMENT,
  memory_id INTEGER NOT NULL,
  what TEXT NOT NULL
,
  row_seal INTEGER) STRICT;

CREATE TRIGGER memory_saved AFTER INSERT ON memory WHEN new.kind <> 'episode' BEGIN
  INSERT INTO memory_untold (memory_id, what) VALUES (new.id, 'saved');
END;

CREATE TRIGGER memory_over AFTER UPDATE OF state ON memory
WHEN new.state <> old.state AND new.state IN ('superseded', 'merged', 'archived') BEGIN
  INSERT INTO memory_untold (memory_id, what) VALUES (new.id, iif(new.state = 'archived', 'archived', 'superseded'));
END;
-- sentences that were forgotten, as keyed hashes: a text that repeats one is not remembered, until a person asks for it
CREATE TABLE memory_echo (
  hash BLOB PRIMARY KEY,
  created_at INTEGER NOT NULL
,
  row_seal INTEGER) STRICT, WITHOUT ROWID;

-- Checksums of rows: see sealing.py. `columns` are those that a table's checksums are made of.
CREATE TABLE IF NOT EXISTS sealed_table (
  name TEXT PRIMARY KEY,
  columns TEXT NOT NULL
) STRICT, WITHOUT ROWID;

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
