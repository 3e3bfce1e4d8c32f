CREATE TABLE lane (
  id INTEGER PRIMARY KEY,
  channel TEXT NOT NULL,
  account TEXT NOT NULL,
  conversation TEXT NOT NULL,
  key TEXT NOT NULL,
  head INTEGER NOT NULL DEFAULT 0,
  batched INTEGER NOT NULL DEFAULT 0,
  priority INTEGER NOT NULL DEFAULT 100,
  oldest_at INTEGER,
  newest_at INTEGER,
  last_id INTEGER,
  before_id INTEGER,
  due_at INTEGER,
  chars INTEGER NOT NULL DEFAULT 0,
  transcript INTEGER NOT NULL DEFAULT 0,
  pruned INTEGER NOT NULL DEFAULT 0,
  external_from INTEGER,
  row_seal INTEGER,
  UNIQUE (channel, account, conversation, key)
) STRICT;
CREATE INDEX lane_due ON lane (priority, due_at) WHERE due_at IS NOT NULL;
CREATE INDEX lane_oldest ON lane (channel, oldest_at) WHERE oldest_at IS NOT NULL;

CREATE TABLE message (
  id INTEGER PRIMARY KEY,
  lane_id INTEGER NOT NULL REFERENCES lane (id),
  number INTEGER NOT NULL,
  previous_id INTEGER,
  sender TEXT NOT NULL,
  sender_name TEXT NOT NULL DEFAULT '',
  direct INTEGER NOT NULL DEFAULT 0,
  trust TEXT NOT NULL,
  external_id TEXT,
  provider_id TEXT,
  reply_to TEXT,
  topic TEXT,
  reply_url TEXT,
  event TEXT NOT NULL DEFAULT '',
  priority INTEGER NOT NULL,
  received_at INTEGER NOT NULL,
  key_hash BLOB,
  content_hash BLOB NOT NULL,
  seal INTEGER NOT NULL,
  forgotten_at INTEGER,
  text TEXT NOT NULL,
  payload BLOB NOT NULL
) STRICT;
CREATE INDEX message_provider ON message (provider_id) WHERE provider_id IS NOT NULL;
CREATE INDEX message_owner ON message (id) WHERE trust = 'owner' AND direct = 1;
CREATE INDEX message_external ON message (lane_id, number) WHERE trust = 'external';

CREATE TABLE redaction (
  message_id INTEGER PRIMARY KEY,
  marks TEXT NOT NULL
,
  row_seal INTEGER) STRICT;
CREATE TABLE placed (
  message_id INTEGER PRIMARY KEY,
  reason TEXT NOT NULL
,
  row_seal INTEGER) STRICT;
CREATE TRIGGER message_gone AFTER DELETE ON message BEGIN
  DELETE FROM redaction WHERE message_id = old.id;
  DELETE FROM placed WHERE message_id = old.id;
END;

CREATE TABLE lane_mark (
  lane_id INTEGER NOT NULL REFERENCES lane (id),
  number INTEGER NOT NULL,
  message_id INTEGER NOT NULL,
  PRIMARY KEY (lane_id, number)
) STRICT, WITHOUT ROWID;

CREATE TABLE message_key (
  key BLOB PRIMARY KEY,
  content BLOB NOT NULL,
  message_id INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE message_keyed (
  one INTEGER PRIMARY KEY CHECK (one = 1),
  until INTEGER NOT NULL
) STRICT;
INSERT INTO message_keyed (one, until) VALUES (1, 0);

CREATE TABLE batch (
  id INTEGER PRIMARY KEY,
  lane_id INTEGER NOT NULL REFERENCES lane (id),
  first INTEGER NOT NULL,
  last INTEGER NOT NULL,
  last_id INTEGER NOT NULL,
  chars INTEGER NOT NULL DEFAULT 0,
  state TEXT NOT NULL,
  action TEXT NOT NULL,
  rule TEXT NOT NULL,
  rule_version TEXT NOT NULL,
  reason TEXT NOT NULL,
  priority INTEGER NOT NULL,
  first_at INTEGER NOT NULL,
  ready_at INTEGER NOT NULL,
  later INTEGER NOT NULL DEFAULT 0,
  created_at INTEGER NOT NULL,
  ended_at INTEGER,
  owner TEXT,
  lease_until INTEGER,
  fence INTEGER NOT NULL DEFAULT 0,
  attempts INTEGER NOT NULL DEFAULT 0,
  crashes INTEGER NOT NULL DEFAULT 0,
  deferrals INTEGER NOT NULL DEFAULT 0,
  deferred_from INTEGER,
  alone INTEGER NOT NULL DEFAULT 0,
  error TEXT NOT NULL DEFAULT '',
  task_id INTEGER,
  kept INTEGER NOT NULL DEFAULT 1,
  pruned_at INTEGER,
  steered INTEGER,
  steered_at INTEGER
,
  row_seal INTEGER,
  trial_after_ms INTEGER NOT NULL DEFAULT 0,
  trial_deaths INTEGER NOT NULL DEFAULT 0,
  trials_ms INTEGER NOT NULL DEFAULT 0,
  charges INTEGER NOT NULL DEFAULT 0,
  survived INTEGER NOT NULL DEFAULT 0,
  requeued INTEGER NOT NULL DEFAULT 0) STRICT;
CREATE UNIQUE INDEX batch_range ON batch (lane_id, first);
CREATE INDEX batch_open ON batch (lane_id, first) WHERE state IN ('queued', 'leased');
CREATE INDEX batch_ended ON batch (ended_at) WHERE kept = 1 AND ended_at IS NOT NULL;
CREATE INDEX batch_pruned ON batch (ended_at) WHERE kept = 0;
CREATE INDEX batch_task ON batch (task_id) WHERE task_id IS NOT NULL;
CREATE INDEX batch_steered ON batch (steered) WHERE steered IS NOT NULL;
CREATE INDEX batch_leased ON batch (lease_until) WHERE state = 'leased';
CREATE INDEX batch_suspect ON batch (crashes, alone) WHERE state = 'leased' AND crashes > 0;

CREATE TABLE ready (
  lane_id INTEGER PRIMARY KEY REFERENCES lane (id),
  batch_id INTEGER NOT NULL,
  suspect INTEGER NOT NULL,
  later INTEGER NOT NULL,
  priority INTEGER NOT NULL,
  first_at INTEGER NOT NULL,
  ready_at INTEGER NOT NULL
) STRICT;
CREATE INDEX ready_next ON ready (suspect, priority, first_at, batch_id) WHERE later = 0;
CREATE INDEX ready_later ON ready (ready_at) WHERE later = 1;

CREATE TABLE turn (
  id INTEGER PRIMARY KEY,
  lane_id INTEGER NOT NULL REFERENCES lane (id),
  batch_id INTEGER NOT NULL,
  state TEXT NOT NULL,
  reason TEXT NOT NULL DEFAULT '',
  model TEXT NOT NULL DEFAULT '',
  tokens_in INTEGER NOT NULL DEFAULT 0,
  tokens_out INTEGER NOT NULL DEFAULT 0,
  cost_micros INTEGER,
  started_at INTEGER NOT NULL,
  ended_at INTEGER
,
  row_seal INTEGER) STRICT;
CREATE UNIQUE INDEX turn_open ON turn (batch_id) WHERE state = 'open';
CREATE INDEX turn_batch ON turn (batch_id);
CREATE INDEX turn_lane ON turn (lane_id, id);

-- The steps of a turn, or of a task, whose id stands for its turn.
CREATE TABLE step (
  turn_id INTEGER NOT NULL,
  n INTEGER NOT NULL,
  kind TEXT NOT NULL,
  subject TEXT NOT NULL,
  input_hash BLOB NOT NULL,
  repeatable INTEGER NOT NULL DEFAULT 1,
  state TEXT NOT NULL,
  tries INTEGER NOT NULL DEFAULT 1,
  output TEXT,
  tokens_in INTEGER NOT NULL DEFAULT 0,
  tokens_out INTEGER NOT NULL DEFAULT 0,
  cost_micros INTEGER,
  started_at INTEGER NOT NULL,
  ended_at INTEGER,
  row_seal INTEGER,
  PRIMARY KEY (turn_id, n)
) STRICT, WITHOUT ROWID;

CREATE TABLE trace (
  turn_id INTEGER PRIMARY KEY REFERENCES turn (id),
  body BLOB NOT NULL,
  created_at INTEGER NOT NULL
,
  row_seal INTEGER) STRICT;

CREATE TABLE injection (
  turn_id INTEGER NOT NULL,
  memory_id INTEGER NOT NULL,
  rank INTEGER NOT NULL,
  how TEXT NOT NULL,
  row_seal INTEGER,
  PRIMARY KEY (turn_id, memory_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX injection_memory ON injection (memory_id, turn_id);

-- A person's word on a memory that a turn was shown; it outlives the turn.
CREATE TABLE feedback (
  turn_id INTEGER NOT NULL,
  memory_id INTEGER NOT NULL,
  lane_id INTEGER NOT NULL REFERENCES lane (id),
  state TEXT NOT NULL,
  given_by TEXT NOT NULL,
  given_at INTEGER NOT NULL,
  row_seal INTEGER,
  PRIMARY KEY (turn_id, memory_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX feedback_memory ON feedback (memory_id);
CREATE INDEX feedback_wrong ON feedback (lane_id, memory_id) WHERE state = 'wrong';

CREATE TABLE session (
  id INTEGER PRIMARY KEY,
  lane_id INTEGER NOT NULL REFERENCES lane (id),
  state TEXT NOT NULL,
  first INTEGER NOT NULL,
  last INTEGER,
  started_at INTEGER NOT NULL,
  started_reason TEXT NOT NULL,
  active_at INTEGER NOT NULL,
  quiet_since INTEGER NOT NULL,
  ended_at INTEGER,
  ended_reason TEXT NOT NULL DEFAULT '',
  invalidated_at INTEGER,
  invalidated_reason TEXT NOT NULL DEFAULT '',
  processed_until INTEGER,
  ruled_until INTEGER NOT NULL DEFAULT 0,
  firm_until INTEGER NOT NULL DEFAULT 0,
  collection TEXT NOT NULL DEFAULT 'clean',
  collect_at INTEGER,
  owner TEXT NOT NULL DEFAULT '',
  fence INTEGER NOT NULL DEFAULT 0,
  attempts INTEGER NOT NULL DEFAULT 0,
  error TEXT NOT NULL DEFAULT ''
,
  row_seal INTEGER) STRICT;
CREATE UNIQUE INDEX session_current ON session (lane_id) WHERE state IN ('active', 'sleeping');
CREATE INDEX session_lane ON session (lane_id, id);
CREATE INDEX session_quiet ON session (state, quiet_since) WHERE ended_at IS NULL;
CREATE INDEX session_collect ON session (collect_at, id) WHERE collect_at IS NOT NULL;
CREATE INDEX session_unread ON session (id) WHERE collection <> 'clean' OR ended_at IS NULL;

CREATE TABLE finding (
  id INTEGER PRIMARY KEY,
  session_id INTEGER NOT NULL REFERENCES session (id),
  lane_id INTEGER NOT NULL REFERENCES lane (id),
  first INTEGER NOT NULL,
  last INTEGER NOT NULL,
  extractor TEXT NOT NULL,
  statements TEXT NOT NULL,
  tokens_in INTEGER NOT NULL DEFAULT 0,
  tokens_out INTEGER NOT NULL DEFAULT 0,
  cost_micros INTEGER,
  created_at INTEGER NOT NULL,
  applied_at INTEGER
,
  row_seal INTEGER) STRICT;
CREATE UNIQUE INDEX finding_due ON finding (session_id) WHERE applied_at IS NULL;
CREATE INDEX finding_session ON finding (session_id);
CREATE INDEX finding_applied ON finding (applied_at) WHERE applied_at IS NOT NULL;
CREATE INDEX finding_lane ON finding (lane_id, first);

-- what a process has to know again after its end, until a time
CREATE TABLE note (
  name TEXT PRIMARY KEY,
  text TEXT NOT NULL,
  until INTEGER NOT NULL
,
  row_seal INTEGER) STRICT, WITHOUT ROWID;
CREATE INDEX note_until ON note (until);

CREATE TABLE daily_run (
  name TEXT PRIMARY KEY,
  at INTEGER NOT NULL
,
  row_seal INTEGER) STRICT, WITHOUT ROWID;

-- How to speak, by scope: session:LANE, person:ID or global; a scope without a row has none set.
CREATE TABLE personality (
  scope TEXT PRIMARY KEY,
  text TEXT NOT NULL,
  set_at INTEGER NOT NULL,
  set_by TEXT NOT NULL
,
  row_seal INTEGER) STRICT, WITHOUT ROWID;

-- Tokens estimated, and reported by the model for the same prompts.
CREATE TABLE calibration (
  model TEXT PRIMARY KEY,
  estimated INTEGER NOT NULL,
  reported INTEGER NOT NULL
,
  row_seal INTEGER) STRICT, WITHOUT ROWID;

CREATE TABLE slot (
  id INTEGER PRIMARY KEY,
  lane_id INTEGER NOT NULL REFERENCES lane (id),
  person TEXT NOT NULL,
  question TEXT NOT NULL,
  expected TEXT NOT NULL,
  options TEXT NOT NULL DEFAULT '[]',
  anchor TEXT NOT NULL,
  opened_at INTEGER NOT NULL,
  expires_at INTEGER NOT NULL,
  state TEXT NOT NULL,
  filled_by TEXT NOT NULL DEFAULT '',
  value TEXT NOT NULL DEFAULT '',
  reason TEXT NOT NULL DEFAULT '',
  ended_at INTEGER
,
  row_seal INTEGER) STRICT;
CREATE UNIQUE INDEX slot_open ON slot (lane_id, person) WHERE state = 'open';
CREATE INDEX slot_lane ON slot (lane_id, id);

CREATE TABLE transcript (
  lane_id INTEGER NOT NULL REFERENCES lane (id),
  position INTEGER NOT NULL,
  session_id INTEGER NOT NULL,
  turn_id INTEGER NOT NULL,
  role TEXT NOT NULL,
  speaker TEXT NOT NULL DEFAULT '',
  sender TEXT NOT NULL DEFAULT '',
  trust TEXT NOT NULL DEFAULT '',
  direct INTEGER NOT NULL DEFAULT 0,
  text TEXT NOT NULL,
  attached TEXT NOT NULL DEFAULT '',
  calls TEXT NOT NULL DEFAULT '',
  call_id TEXT NOT NULL DEFAULT '',
  ref TEXT NOT NULL DEFAULT '',
  unprompted INTEGER NOT NULL DEFAULT 0,
  created_at INTEGER NOT NULL,
  row_seal INTEGER,
  PRIMARY KEY (lane_id, position)
) STRICT, WITHOUT ROWID;
CREATE INDEX transcript_turn ON transcript (turn_id);
CREATE INDEX transcript_ref ON transcript (ref) WHERE ref <> '';
CREATE INDEX transcript_tool ON transcript (lane_id, speaker) WHERE role = 'tool';

CREATE TABLE lane_context (
  lane_id INTEGER PRIMARY KEY REFERENCES lane (id),
  version INTEGER NOT NULL,
  summarised_until INTEGER NOT NULL DEFAULT 0,
  floor INTEGER NOT NULL DEFAULT 0,
  left_out INTEGER NOT NULL DEFAULT 0,
  summary INTEGER,
  changed_at INTEGER NOT NULL,
  attempts INTEGER NOT NULL DEFAULT 0,
  next_at INTEGER,
  error TEXT NOT NULL DEFAULT ''
,
  row_seal INTEGER) STRICT;

CREATE TABLE lane_summary (
  lane_id INTEGER NOT NULL REFERENCES lane (id),
  version INTEGER NOT NULL,
  first INTEGER NOT NULL,
  last INTEGER NOT NULL,
  text TEXT NOT NULL,
  kind TEXT NOT NULL,
  model TEXT NOT NULL DEFAULT '',
  messages INTEGER NOT NULL,
  chars INTEGER NOT NULL,
  created_at INTEGER NOT NULL,
  row_seal INTEGER,
  trust TEXT NOT NULL DEFAULT '',
  PRIMARY KEY (lane_id, version)
) STRICT, WITHOUT ROWID;

CREATE TABLE lane_cut (
  lane_id INTEGER NOT NULL REFERENCES lane (id),
  version INTEGER NOT NULL,
  first INTEGER NOT NULL,
  last INTEGER NOT NULL,
  reason TEXT NOT NULL,
  left_out INTEGER NOT NULL DEFAULT 0,
  created_at INTEGER NOT NULL,
  row_seal INTEGER,
  PRIMARY KEY (lane_id, version)
) STRICT, WITHOUT ROWID;

CREATE TABLE summary_due (
  lane_id INTEGER PRIMARY KEY REFERENCES lane (id),
  version INTEGER NOT NULL
,
  row_seal INTEGER) STRICT;

CREATE TABLE reply (
  id INTEGER PRIMARY KEY,
  lane_id INTEGER NOT NULL REFERENCES lane (id),
  channel TEXT NOT NULL,
  account TEXT NOT NULL,
  conversation TEXT NOT NULL,
  turn_id INTEGER,
  batch_id INTEGER,
  state TEXT NOT NULL,
  notice INTEGER NOT NULL DEFAULT 0,
  text TEXT NOT NULL,
  url TEXT,
  reply_to TEXT,
  owner TEXT,
  fence INTEGER NOT NULL DEFAULT 0,
  attempts INTEGER NOT NULL DEFAULT 0,
  next_at INTEGER NOT NULL,
  possible_duplicate INTEGER NOT NULL DEFAULT 0,
  provider_id TEXT,
  detail TEXT NOT NULL DEFAULT '',
  created_at INTEGER NOT NULL,
  ended_at INTEGER,
  posted_after INTEGER
,
  row_seal INTEGER,
  trust TEXT NOT NULL DEFAULT '',
  about_task INTEGER) STRICT;
CREATE INDEX reply_posted ON reply (lane_id, posted_after) WHERE posted_after IS NOT NULL;
CREATE INDEX reply_waiting ON reply (channel, account, conversation, id) WHERE state IN ('pending', 'sending', 'unknown');
CREATE INDEX reply_next ON reply (channel, next_at) WHERE state IN ('pending', 'unknown');
CREATE INDEX reply_push ON reply (next_at) WHERE state IN ('pending', 'unknown') AND url IS NOT NULL;
CREATE INDEX reply_sending ON reply (owner) WHERE state = 'sending';
CREATE INDEX reply_unknown ON reply (next_at) WHERE state = 'unknown';
CREATE INDEX reply_turn ON reply (turn_id) WHERE turn_id IS NOT NULL;
CREATE INDEX reply_batch ON reply (batch_id) WHERE batch_id IS NOT NULL;
CREATE INDEX reply_provider ON reply (provider_id) WHERE provider_id IS NOT NULL;

CREATE TABLE reply_move (
  reply_id INTEGER NOT NULL REFERENCES reply (id),
  n INTEGER NOT NULL,
  verb TEXT NOT NULL,
  at INTEGER NOT NULL,
  detail TEXT NOT NULL DEFAULT '',
  row_seal INTEGER,
  PRIMARY KEY (reply_id, n)
) STRICT, WITHOUT ROWID;
CREATE TRIGGER reply_gone AFTER DELETE ON reply BEGIN
  DELETE FROM reply_move WHERE reply_id = old.id;
END;

-- Work for a worker or a branch. Its steps are kept under its own id; `terms` is a JSON object. `relay`: 1 when its lane is
-- to be told what it came to, 2 when that was received there as a message (at `told_at`), 3 when a turn was shown it.
CREATE TABLE task (
  id INTEGER PRIMARY KEY,
  key TEXT NOT NULL,
  kind TEXT NOT NULL DEFAULT 'worker',
  state TEXT NOT NULL,
  lane_id INTEGER REFERENCES lane (id),
  turn_id INTEGER,
  depth INTEGER NOT NULL DEFAULT 0,
  rule TEXT NOT NULL DEFAULT '',
  description TEXT NOT NULL,
  terms TEXT NOT NULL DEFAULT '{}',
  outside INTEGER NOT NULL DEFAULT 1,
  messages INTEGER NOT NULL DEFAULT 0,
  priority INTEGER NOT NULL DEFAULT 100,
  ready_at INTEGER NOT NULL DEFAULT 0,
  owner TEXT,
  lease_until INTEGER,
  fence INTEGER NOT NULL DEFAULT 0,
  attempts INTEGER NOT NULL DEFAULT 0,
  crashes INTEGER NOT NULL DEFAULT 0,
  deferrals INTEGER NOT NULL DEFAULT 0,
  deferred_from INTEGER,
  status TEXT NOT NULL DEFAULT '',
  result TEXT NOT NULL DEFAULT '',
  reason TEXT NOT NULL DEFAULT '',
  tokens_in INTEGER NOT NULL DEFAULT 0,
  tokens_out INTEGER NOT NULL DEFAULT 0,
  cost_micros INTEGER,
  remembered INTEGER NOT NULL DEFAULT 1,
  relay INTEGER NOT NULL DEFAULT 0,
  told_at INTEGER,
  created_at INTEGER NOT NULL,
  started_at INTEGER,
  ended_at INTEGER
,
  row_seal INTEGER,
  expires_at INTEGER) STRICT;
CREATE UNIQUE INDEX task_alike ON task (key) WHERE state = 'pending' AND fence = 0 AND rule <> '';
CREATE INDEX task_made ON task (turn_id) WHERE turn_id IS NOT NULL;
CREATE INDEX task_due ON task (kind, priority, id) WHERE state = 'pending';
CREATE INDEX task_running ON task (lease_until) WHERE state = 'running';
CREATE INDEX task_busy ON task (key) WHERE state = 'running';
CREATE INDEX task_state ON task (state, id);
CREATE INDEX task_key ON task (key, id);
CREATE INDEX task_ended ON task (ended_at) WHERE ended_at IS NOT NULL;
CREATE INDEX task_unremembered ON task (id) WHERE remembered = 0;
CREATE INDEX task_untold ON task (id) WHERE relay = 1 AND ended_at IS NOT NULL;
CREATE INDEX task_told ON task (lane_id, told_at) WHERE told_at IS NOT NULL;
CREATE INDEX task_beside ON task (lane_id, id) WHERE turn_id IS NOT NULL AND ended_at IS NULL;

-- which task waits for which
CREATE TABLE task_after (
  task_id INTEGER NOT NULL REFERENCES task (id),
  after_id INTEGER NOT NULL,
  row_seal INTEGER,
  PRIMARY KEY (task_id, after_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX task_before ON task_after (after_id);
CREATE TRIGGER task_gone AFTER DELETE ON task BEGIN
  DELETE FROM task_after WHERE task_id = old.id;
  DELETE FROM step WHERE turn_id = old.id;
  DELETE FROM staged_memory WHERE turn_id = old.id;
END;

CREATE TABLE journal (
  id INTEGER PRIMARY KEY,
  topic TEXT NOT NULL,
  payload TEXT NOT NULL,
  correlation_id TEXT NOT NULL DEFAULT '',
  created_at INTEGER NOT NULL
,
  row_seal INTEGER) STRICT;
CREATE INDEX journal_about ON journal (correlation_id, topic) WHERE correlation_id <> '';

CREATE TABLE subscription (
  name TEXT PRIMARY KEY,
  topics TEXT NOT NULL,
  reached INTEGER NOT NULL,
  since INTEGER NOT NULL
,
  row_seal INTEGER) STRICT, WITHOUT ROWID;

CREATE TABLE delivery (
  id INTEGER PRIMARY KEY,
  subscriber TEXT NOT NULL,
  event_id INTEGER NOT NULL,
  key TEXT NOT NULL,
  state TEXT NOT NULL,
  attempts INTEGER NOT NULL DEFAULT 0,
  due_at INTEGER NOT NULL,
  fence INTEGER NOT NULL DEFAULT 0,
  held_until INTEGER NOT NULL DEFAULT 0,
  ended_at INTEGER,
  error TEXT NOT NULL DEFAULT ''
,
  row_seal INTEGER) STRICT;
CREATE UNIQUE INDEX delivery_of ON delivery (event_id, subscriber);
CREATE INDEX delivery_pending ON delivery (subscriber, event_id) WHERE state = 'pending';
CREATE INDEX delivery_open ON delivery (subscriber, key, event_id) WHERE state IN ('pending', 'processing');
CREATE INDEX delivery_held ON delivery (subscriber, held_until) WHERE state = 'processing';
CREATE INDEX delivery_ended ON delivery (ended_at) WHERE state IN ('done', 'dismissed');
CREATE INDEX delivery_dead ON delivery (subscriber, event_id) WHERE state = 'dead';

-- What comes at a time; the lane that hears of it is part of it, and of each of its runs.
CREATE TABLE schedule (
  id INTEGER PRIMARY KEY,
  source TEXT NOT NULL,
  name TEXT NOT NULL,
  what TEXT NOT NULL,
  timing TEXT NOT NULL,
  text TEXT NOT NULL,
  channel TEXT,
  account TEXT,
  conversation TEXT,
  key TEXT,
  url TEXT,
  direct INTEGER NOT NULL DEFAULT 0,
  trust TEXT NOT NULL,
  urgent INTEGER NOT NULL DEFAULT 0,
  whenever INTEGER NOT NULL DEFAULT 0,
  state TEXT NOT NULL,
  next_at INTEGER,
  failures INTEGER NOT NULL DEFAULT 0,
  reason TEXT NOT NULL DEFAULT '',
  turn_id INTEGER,
  created_at INTEGER NOT NULL
,
  row_seal INTEGER) STRICT;
CREATE INDEX schedule_made ON schedule (turn_id) WHERE turn_id IS NOT NULL;
CREATE INDEX schedule_due ON schedule (next_at, id) WHERE state = 'active';
CREATE UNIQUE INDEX schedule_named ON schedule (source, name)
WHERE name <> '' AND state IN ('active', 'paused', 'disabled');
CREATE INDEX schedule_live ON schedule (source, id) WHERE state IN ('active', 'paused', 'disabled');
CREATE INDEX schedule_over ON schedule (created_at) WHERE state IN ('done', 'cancelled');

CREATE TABLE schedule_run (
  schedule_id INTEGER NOT NULL REFERENCES schedule (id),
  due_at INTEGER NOT NULL,
  errand INTEGER NOT NULL DEFAULT 0,
  state TEXT NOT NULL,
  ready_at INTEGER NOT NULL,
  output TEXT NOT NULL DEFAULT 'none',
  channel TEXT,
  account TEXT,
  conversation TEXT,
  key TEXT,
  url TEXT,
  direct INTEGER NOT NULL DEFAULT 0,
  message_id INTEGER,
  reply_id INTEGER,
  reason TEXT NOT NULL DEFAULT '',
  fired_at INTEGER NOT NULL,
  ended_at INTEGER,
  task_id INTEGER,
  row_seal INTEGER,
  PRIMARY KEY (schedule_id, due_at)
) STRICT, WITHOUT ROWID;
CREATE INDEX run_due ON schedule_run (errand, ready_at, schedule_id, due_at) WHERE state = 'due';
CREATE INDEX run_under_way ON schedule_run (schedule_id, due_at) WHERE state IN ('due', 'running') OR output = 'asked';
CREATE INDEX run_heard ON schedule_run (output) WHERE output IN ('asked', 'waiting');
CREATE INDEX run_fired ON schedule_run (fired_at);

CREATE TABLE prune_run (
  n INTEGER PRIMARY KEY,
  at INTEGER NOT NULL,
  last_id INTEGER NOT NULL,
  messages INTEGER NOT NULL DEFAULT 0
) STRICT;

CREATE TABLE episode_due (
  batch_id INTEGER PRIMARY KEY,
  lane_id INTEGER NOT NULL REFERENCES lane (id),
  turn_id INTEGER
,
  row_seal INTEGER) STRICT;
CREATE INDEX episode_due_lane ON episode_due (lane_id, batch_id);

-- what the tools of a turn, or of a branch under its own id, asked memory to do, as JSON, until memory has done it
CREATE TABLE staged_memory (
  turn_id INTEGER NOT NULL,
  n INTEGER NOT NULL,
  deed TEXT NOT NULL,
  row_seal INTEGER,
  PRIMARY KEY (turn_id, n)
) STRICT, WITHOUT ROWID;

CREATE TABLE tombstone (
  hash BLOB PRIMARY KEY,
  created_at INTEGER NOT NULL
,
  row_seal INTEGER) STRICT, WITHOUT ROWID;

-- What people asked to be forgotten; `counts` is a JSON object of what went, by place.
CREATE TABLE forgetting (
  id INTEGER PRIMARY KEY,
  state TEXT NOT NULL,
  how TEXT NOT NULL,
  given_by TEXT NOT NULL,
  requested_at INTEGER NOT NULL,
  changed_at INTEGER NOT NULL,
  counts TEXT NOT NULL DEFAULT '{}',
  undo_until INTEGER
,
  row_seal INTEGER) STRICT;
CREATE INDEX forgetting_unfinished ON forgetting (id) WHERE state NOT IN ('done', 'undone');
CREATE INDEX forgetting_undoable ON forgetting (undo_until) WHERE undo_until IS NOT NULL;

-- what forgettings that can be undone took away, as SQLite records changes; read by nothing else, and deleted in time
CREATE TABLE forgotten_aside (
  n INTEGER PRIMARY KEY AUTOINCREMENT,
  forgetting_id INTEGER NOT NULL REFERENCES forgetting (id),
  images BLOB NOT NULL
,
  row_seal INTEGER) STRICT;
CREATE INDEX forgotten_aside_of ON forgotten_aside (forgetting_id);

-- What goes, until all of it is gone: then nothing is kept here.
CREATE TABLE forgetting_item (
  forgetting_id INTEGER NOT NULL REFERENCES forgetting (id),
  kind TEXT NOT NULL,
  ref ANY NOT NULL,
  done INTEGER NOT NULL DEFAULT 0,
  row_seal INTEGER,
  PRIMARY KEY (forgetting_id, kind, ref)
) STRICT, WITHOUT ROWID;
CREATE INDEX forgetting_item_open ON forgetting_item (forgetting_id, kind) WHERE done = 0;

CREATE TABLE tally (
  what TEXT NOT NULL,
  name TEXT NOT NULL,
  n INTEGER NOT NULL,
  PRIMARY KEY (what, name)
) STRICT, WITHOUT ROWID;

CREATE TRIGGER batch_counted AFTER INSERT ON batch WHEN new.state NOT IN ('queued', 'leased') BEGIN
  INSERT INTO tally (what, name, n) VALUES ('batch', new.state, 1) ON CONFLICT DO UPDATE SET n = n + 1;
END;
CREATE TRIGGER batch_settled AFTER UPDATE OF state ON batch
WHEN old.state <> new.state AND new.state NOT IN ('queued', 'leased') BEGIN
  INSERT INTO tally (what, name, n) VALUES ('batch', new.state, 1) ON CONFLICT DO UPDATE SET n = n + 1;
END;
CREATE TRIGGER batch_reopened AFTER UPDATE OF state ON batch
WHEN old.state <> new.state AND old.state NOT IN ('queued', 'leased') BEGIN
  UPDATE tally SET n = n - 1 WHERE what = 'batch' AND name = old.state;
END;
CREATE TRIGGER batch_gone AFTER DELETE ON batch WHEN old.state NOT IN ('queued', 'leased') BEGIN
  UPDATE tally SET n = n - 1 WHERE what = 'batch' AND name = old.state;
END;
CREATE TRIGGER reply_settled AFTER UPDATE OF state ON reply
WHEN old.state <> new.state AND new.state NOT IN ('pending', 'sending', 'unknown') BEGIN
  INSERT INTO tally (what, name, n) VALUES ('reply', new.state, 1) ON CONFLICT DO UPDATE SET n = n + 1;
END;
CREATE TRIGGER reply_reopened AFTER UPDATE OF state ON reply
WHEN old.state <> new.state AND old.state NOT IN ('pending', 'sending', 'unknown') BEGIN
  UPDATE tally SET n = n - 1 WHERE what = 'reply' AND name = old.state;
END;
CREATE TRIGGER reply_removed AFTER DELETE ON reply WHEN old.state NOT IN ('pending', 'sending', 'unknown') BEGIN
  UPDATE tally SET n = n - 1 WHERE what = 'reply' AND name = old.state;
END;
CREATE TRIGGER task_made AFTER INSERT ON task WHEN new.state IN ('completed', 'failed', 'cancelled') BEGIN
  INSERT INTO tally (what, name, n) VALUES ('task', new.state, 1) ON CONFLICT DO UPDATE SET n = n + 1;
END;
CREATE TRIGGER task_settled AFTER UPDATE OF state ON task
WHEN old.state <> new.state AND new.state IN ('completed', 'failed', 'cancelled') BEGIN
  INSERT INTO tally (what, name, n) VALUES ('task', new.state, 1) ON CONFLICT DO UPDATE SET n = n + 1;
END;
CREATE TRIGGER task_reopened AFTER UPDATE OF state ON task
WHEN old.state <> new.state AND old.state IN ('completed', 'failed', 'cancelled') BEGIN
  UPDATE tally SET n = n - 1 WHERE what = 'task' AND name = old.state;
END;
CREATE TRIGGER task_removed AFTER DELETE ON task WHEN old.state IN ('completed', 'failed', 'cancelled') BEGIN
  UPDATE tally SET n = n - 1 WHERE what = 'task' AND name = old.state;
END;
CREATE TRIGGER turn_settled AFTER UPDATE OF state ON turn WHEN old.state <> new.state AND new.state <> 'open' BEGIN
  INSERT INTO tally (what, name, n)
  VALUES ('turn', new.state, 1), ('usage', 'in', new.tokens_in), ('usage', 'out', new.tokens_out),
    ('usage', 'cost', coalesce(new.cost_micros, 0)), ('usage', 'priced', new.cost_micros IS NOT NULL)
  ON CONFLICT DO UPDATE SET n = n + excluded.n;
END;

CREATE VIEW buffer AS
SELECT
  message.id AS id,
  lane.channel AS channel,
  message.sender AS sender,
  lane.conversation AS conversation,
  message.payload AS payload,
  message.received_at AS received_at,
  message.priority AS priority,
  message.number <= lane.batched AS routed
FROM message JOIN lane ON lane.id = message.lane_id;
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
  row_seal INTEGER,
  PRIMARY KEY (message_id, external_id)
) STRICT, WITHOUT ROWID;
CREATE TRIGGER message_gone_redelivered AFTER DELETE ON message BEGIN
  DELETE FROM redelivery WHERE message_id = old.id;
END;
CREATE TRIGGER message_forgotten_redelivered AFTER UPDATE OF forgotten_at ON message
WHEN new.forgotten_at IS NOT NULL BEGIN
  DELETE FROM redelivery WHERE message_id = new.id;
END;

-- Checksums of rows: see sealing.py. `columns` are those that a table's checksums are made of.
CREATE TABLE IF NOT EXISTS sealed_table (
  name TEXT PRIMARY KEY,
  columns TEXT NOT NULL
) STRICT, WITHOUT ROWID;

-- Approvals: until when a call that waits for a person may be approved.
CREATE INDEX task_expiring ON task (expires_at) WHERE expires_at IS NOT NULL AND state = 'needs_review';

-- Notices to the owner about a task: forgotten and removed with it.
CREATE INDEX reply_about ON reply (about_task) WHERE about_task IS NOT NULL;
CREATE TRIGGER task_notices_gone AFTER DELETE ON task BEGIN
  DELETE FROM reply WHERE about_task = old.id AND state IN ('sent', 'not_deliverable');
END;

-- Crashes: former lives of the process, by its steady clock, and what trials showed of a batch.
-- `lived_ms` is its age when it last said so, `due_ms` by when it was to say so again, `trial_ms` its age when a trial began.
CREATE TABLE life (
  id INTEGER PRIMARY KEY,
  owner TEXT NOT NULL UNIQUE,
  state TEXT NOT NULL,
  started_at INTEGER NOT NULL,
  lived_ms INTEGER NOT NULL DEFAULT 0,
  due_ms INTEGER NOT NULL,
  trial_ms INTEGER
) STRICT;
CREATE INDEX life_running ON life (id) WHERE state = 'running';
CREATE INDEX batch_charged ON batch (id) WHERE charges > 0 AND requeued = 0;

-- The identity of a store, the marks of its log (progress.py), and the memory store that belongs to a buffer (pair.py).
CREATE TABLE IF NOT EXISTS store_mark (
  one INTEGER PRIMARY KEY CHECK (one = 1),
  id BLOB NOT NULL,
  marks INTEGER NOT NULL,
  memory BLOB
) STRICT;
INSERT OR IGNORE INTO store_mark (one, id, marks) VALUES (1, randomblob(16), 0);

-- Replies that no turn made: notices to the owner and what schedules post. Forgetting looks for those that name a task.
CREATE INDEX reply_unasked ON reply (lane_id) WHERE turn_id IS NULL;
