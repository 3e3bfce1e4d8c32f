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

-- Checksums of rows: see sealing.py. `columns` are those that a table's checksums are made of.
CREATE TABLE IF NOT EXISTS sealed_table (
  name TEXT PRIMARY KEY,
  columns TEXT NOT NULL
) STRICT, WITHOUT ROWID;
ALTER TABLE lane ADD COLUMN row_seal INTEGER;
ALTER TABLE redaction ADD COLUMN row_seal INTEGER;
ALTER TABLE placed ADD COLUMN row_seal INTEGER;
ALTER TABLE batch ADD COLUMN row_seal INTEGER;
ALTER TABLE turn ADD COLUMN row_seal INTEGER;
ALTER TABLE step ADD COLUMN row_seal INTEGER;
ALTER TABLE trace ADD COLUMN row_seal INTEGER;
ALTER TABLE injection ADD COLUMN row_seal INTEGER;
ALTER TABLE feedback ADD COLUMN row_seal INTEGER;
ALTER TABLE session ADD COLUMN row_seal INTEGER;
ALTER TABLE finding ADD COLUMN row_seal INTEGER;
ALTER TABLE note ADD COLUMN row_seal INTEGER;
ALTER TABLE daily_run ADD COLUMN row_seal INTEGER;
ALTER TABLE personality ADD COLUMN row_seal INTEGER;
ALTER TABLE calibration ADD COLUMN row_seal INTEGER;
ALTER TABLE slot ADD COLUMN row_seal INTEGER;
ALTER TABLE transcript ADD COLUMN row_seal INTEGER;
ALTER TABLE lane_context ADD COLUMN row_seal INTEGER;
ALTER TABLE lane_summary ADD COLUMN row_seal INTEGER;
ALTER TABLE lane_cut ADD COLUMN row_seal INTEGER;
ALTER TABLE summary_due ADD COLUMN row_seal INTEGER;
ALTER TABLE reply ADD COLUMN row_seal INTEGER;
ALTER TABLE reply_move ADD COLUMN row_seal INTEGER;
ALTER TABLE task ADD COLUMN row_seal INTEGER;
ALTER TABLE task_after ADD COLUMN row_seal INTEGER;
ALTER TABLE journal ADD COLUMN row_seal INTEGER;
ALTER TABLE subscription ADD COLUMN row_seal INTEGER;
ALTER TABLE delivery ADD COLUMN row_seal INTEGER;
ALTER TABLE schedule ADD COLUMN row_seal INTEGER;
ALTER TABLE schedule_run ADD COLUMN row_seal INTEGER;
ALTER TABLE episode_due ADD COLUMN row_seal INTEGER;
ALTER TABLE staged_memory ADD COLUMN row_seal INTEGER;
ALTER TABLE tombstone ADD COLUMN row_seal INTEGER;
ALTER TABLE forgetting ADD COLUMN row_seal INTEGER;
ALTER TABLE forgotten_aside ADD COLUMN row_seal INTEGER;
ALTER TABLE forgetting_item ADD COLUMN row_seal INTEGER;
ALTER TABLE redelivery ADD COLUMN row_seal INTEGER;

-- Trust: of what stands for a lane's past, and of what schedules post. '' is a row of version 1, for which it is worked out.
ALTER TABLE lane_summary ADD COLUMN trust TEXT NOT NULL DEFAULT '';
ALTER TABLE reply ADD COLUMN trust TEXT NOT NULL DEFAULT '';

-- Approvals: until when a call that waits for a person may be approved.
ALTER TABLE task ADD COLUMN expires_at INTEGER;
CREATE INDEX task_expiring ON task (expires_at) WHERE expires_at IS NOT NULL AND state = 'needs_review';

-- Notices to the owner about a task: forgotten and removed with it.
ALTER TABLE reply ADD COLUMN about_task INTEGER;
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
ALTER TABLE batch ADD COLUMN trial_after_ms INTEGER NOT NULL DEFAULT 0;
ALTER TABLE batch ADD COLUMN trial_deaths INTEGER NOT NULL DEFAULT 0;
ALTER TABLE batch ADD COLUMN trials_ms INTEGER NOT NULL DEFAULT 0;
ALTER TABLE batch ADD COLUMN charges INTEGER NOT NULL DEFAULT 0;
ALTER TABLE batch ADD COLUMN survived INTEGER NOT NULL DEFAULT 0;
ALTER TABLE batch ADD COLUMN requeued INTEGER NOT NULL DEFAULT 0;
CREATE INDEX batch_charged ON batch (id) WHERE charges > 0 AND requeued = 0;
UPDATE batch SET trial_after_ms = 10000 WHERE state IN ('queued', 'leased') AND crashes > 1;

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
