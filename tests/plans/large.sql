-- 100,000 messages in 20,000 lanes; what stands where: large.py.

INSERT INTO lane (
  id, channel, account, conversation, key, head, batched, priority, oldest_at, newest_at, last_id, before_id, due_at,
  transcript
)
WITH RECURSIVE l (id) AS (SELECT 1 UNION ALL SELECT id + 1 FROM l WHERE id < 20000)
SELECT id, iif(id % 4 = 0, 'http', 'github'), 'default', 'c' || id, 'root:c' || id, 5, iif(id > 19000, 2, 5),
  iif(id > 19000, 10 + id % 3, 100), iif(id > 19000, 1790000000000 + id, NULL), iif(id > 19000, 1790000000000 + id, NULL),
  500000 + id, 400000 + id, iif(id > 19000, 1790000000500 + id, NULL), 10
FROM l;

INSERT INTO message (
  id, lane_id, number, previous_id, sender, trust, external_id, provider_id, priority, received_at, key_hash,
  content_hash, seal, text, payload
)
WITH n (n) AS (VALUES (1), (2), (3), (4), (5))
SELECT n * 100000 + lane.id, lane.id, n, iif(n = 1, NULL, (n - 1) * 100000 + lane.id), 'ann',
  iif(lane.id % 7 = 0, 'external', 'known'), 'k' || n || '-' || lane.id,
  iif(lane.id % 9 = 0, 'p' || n || '-' || lane.id, NULL), 10, 1790000000000 + n * 1000 + lane.id,
  CAST(printf('%016d', n * 100000 + lane.id) AS BLOB), zeroblob(16), 0, 'words', x'7b7d'
FROM n CROSS JOIN lane;

INSERT INTO message_key (key, content, message_id) SELECT key_hash, content_hash, id FROM message ORDER BY key_hash;
UPDATE message_keyed SET until = 600000;

INSERT INTO batch (
  id, lane_id, first, last, last_id, state, action, rule, rule_version, reason, priority, first_at, ready_at, later,
  created_at, fence
)
SELECT id, lane_id, number, number, id,
  CASE
    WHEN number < iif(lane_id > 19000, 2, 5) OR lane_id <= 17992 THEN 'done' WHEN lane_id <= 18000 THEN 'leased' ELSE 'queued'
  END,
  'forward', 'default', 'v1', 'because', 10 + lane_id % 3, received_at, received_at, lane_id % 10 = 0, received_at, 1
FROM message WHERE lane_id <= 19000 OR number <= 2;
UPDATE batch SET ended_at = first_at + 10 WHERE state = 'done';
UPDATE batch SET owner = 'me', lease_until = 1790000090000 WHERE state = 'leased';

INSERT INTO ready (lane_id, batch_id, suspect, later, priority, first_at, ready_at)
SELECT lane_id, id, 0, later, priority, first_at, ready_at FROM batch WHERE state = 'queued';

INSERT INTO turn (id, lane_id, batch_id, state, model, started_at, ended_at)
SELECT id, lane_id, id, iif(state = 'leased', 'open', 'committed'), 'test/model', first_at, ended_at
FROM batch WHERE state <> 'queued';

INSERT INTO step (turn_id, n, kind, subject, input_hash, state, started_at)
SELECT id, 0, 'model', 'test/model', x'00', 'finished', started_at FROM turn;

INSERT INTO session (id, lane_id, state, first, last, started_at, started_reason, active_at, quiet_since, ended_at)
SELECT id, id, iif(id % 2, 'active', 'ended'), 1, iif(id % 2, NULL, 10), 0, '', 0, id, iif(id % 2, NULL, 9) FROM lane;
INSERT INTO slot (id, lane_id, person, question, expected, anchor, opened_at, expires_at, state)
SELECT id, id, 'ann', 'which?', 'text', 'reply:' || id, 0, 9, iif(id % 2, 'open', 'filled') FROM lane;

INSERT INTO transcript (lane_id, position, session_id, turn_id, role, text, ref, created_at)
WITH half (n) AS (VALUES (0), (1))
SELECT lane_id, 2 * first - 1 + n, lane_id, id, iif(n = 0, 'user', 'assistant'), 'words',
  iif(n = 0, 'message:', 'reply:') || id, first_at
FROM batch CROSS JOIN half WHERE state = 'done';

INSERT INTO reply (
  id, lane_id, channel, account, conversation, turn_id, batch_id, state, text, url, owner, next_at, created_at,
  provider_id
)
SELECT batch.id, lane_id, channel, account, conversation, batch.id, batch.id,
  CASE
    WHEN first < 5 OR lane_id > 1000 THEN 'sent'
    WHEN lane_id <= 900 THEN 'pending'
    WHEN lane_id <= 980 THEN 'unknown'
    ELSE 'sending'
  END,
  'words', iif(lane_id <= 100, 'http://x', NULL), 'me', first_at, first_at, iif(first < 5, 'q' || batch.id, NULL)
FROM batch JOIN lane ON lane.id = lane_id WHERE batch.state = 'done';

INSERT INTO episode_due (batch_id, lane_id, turn_id)
SELECT id, lane_id, id FROM batch WHERE state = 'done' AND lane_id <= 5000 AND first = 5;

INSERT INTO journal (topic, payload, correlation_id, created_at)
WITH RECURSIVE l (id) AS (SELECT 1 UNION ALL SELECT id + 1 FROM l WHERE id < 100000)
SELECT 'turn.committed', '{}', CAST(id AS TEXT), 1790000000000 + id FROM l;

INSERT INTO subscription (name, topics, reached, since) VALUES ('slow', '["turn.*"]', 99000, 0), ('stuck', '["turn.*"]', 99000, 0);
INSERT INTO delivery (subscriber, event_id, key, state, due_at)
SELECT 'slow', id * 1024, id, 'pending', 0 FROM journal WHERE id > 90000;
INSERT INTO delivery (subscriber, event_id, key, state, due_at)
SELECT 'stuck', id * 1024, 'one', 'pending', iif(id = 90001, 4102444800000, 0) FROM journal WHERE id > 90000;
INSERT INTO delivery (subscriber, event_id, key, state, due_at, ended_at)
SELECT 'slow', id * 1024, id, 'done', 0, 1790000000000 FROM journal WHERE id <= 90000;

WITH RECURSIVE n (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < 20000)
INSERT INTO task (id, key, state, rule, description, ready_at, owner, lease_until, fence, created_at, ended_at)
SELECT 40 * n, 'k' || n, iif(n <= 19000, 'completed', iif(n <= 19005, 'running', 'pending')), 'r', 'do it', 0,
  iif(n BETWEEN 19001 AND 19005, 'me', NULL), iif(n BETWEEN 19001 AND 19005, 9, NULL), n <= 19005, n, iif(n <= 19000, n, NULL)
FROM n;

INSERT INTO task_after (task_id, after_id) SELECT id, id - 40 FROM task WHERE id % 400 = 0;
