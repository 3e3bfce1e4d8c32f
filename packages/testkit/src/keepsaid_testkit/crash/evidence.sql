-- name: LaneRow
SELECT id, channel, conversation, key, head, batched FROM lane

-- name: MessageRow
SELECT id, lane_id, number, external_id, event, text, sender, received_at FROM message ORDER BY lane_id, number

-- name: BatchRow
SELECT id, lane_id, first, last, state, action, reason, task_id, crashes, steered FROM batch ORDER BY lane_id, first

-- name: TurnRow
SELECT turn.id, turn.batch_id, turn.state, journal.id, turn.reason FROM turn
LEFT JOIN journal ON journal.topic = 'turn.committed' AND journal.payload ->> 'turn' = turn.id
ORDER BY journal.id, turn.id

-- name: SaidRow
SELECT lane_id, position, turn_id, ref, text FROM transcript
WHERE role = 'user' OR ref LIKE 'message:%' ORDER BY lane_id, position

-- name: StepRow
SELECT turn_id, subject, state FROM step WHERE kind = 'tool' ORDER BY turn_id, n

-- name: ReplyRow
SELECT id, batch_id, conversation, state, url, text, notice FROM reply
WHERE batch_id IS NOT NULL ORDER BY id

-- name: SlotRow
SELECT id, lane_id, person, question, state, filled_by, value, opened_at, expires_at FROM slot ORDER BY id

-- name: CommandRow
SELECT CAST(correlation_id AS INTEGER), payload ->> 'name' FROM journal WHERE topic = 'command.executed'

-- name: DeliveryRow
SELECT event_id, state, coalesce(ended_at, 0) FROM delivery WHERE subscriber = 'ledger' ORDER BY event_id

-- name: undelivered_events
SELECT id FROM delivery WHERE state = 'dead' ORDER BY id DESC LIMIT 4

-- A task that waits for one that needs review waits for the owner as well; so it is not open either.
-- name: tasks
WITH RECURSIVE reviewed(id) AS (
  SELECT id FROM task WHERE state = 'needs_review'
  UNION SELECT task_id FROM task_after JOIN reviewed ON reviewed.id = after_id
)
SELECT id, CASE WHEN state = 'blocked' AND id IN (SELECT id FROM reviewed) THEN 'needs_review' ELSE state END, (
  SELECT count(*) FROM journal INDEXED BY journal_about WHERE correlation_id = CAST(task.id AS TEXT)
    AND topic IN ('task.completed', 'task.failed', 'task.cancelled') AND correlation_id <> ''
) FROM task

-- name: EpisodeRow
SELECT source.kind, source.ref FROM memory JOIN memory_source AS source ON source.memory_id = memory.id
WHERE memory.kind = 'episode' AND memory.state = 'active' AND source.n = 0

-- name: mistaught
SELECT subject FROM memory WHERE attribute = 'place' AND subject LIKE 'thing %'
GROUP BY subject HAVING sum(superseded_by IS NULL) <> 1 OR count(*) > 4 OR sum(evidence_count) > 4

-- name: mistimed
SELECT reply.id FROM reply
WHERE batch_id IS NULL AND notice = 0 AND (SELECT count(*) FROM schedule_run WHERE reply_id = reply.id) <> 1
UNION ALL
SELECT schedule_id FROM schedule_run
WHERE output <> 'none' AND message_id IS NULL AND (state <> 'executed' OR reply_id NOT IN (SELECT id FROM reply))
UNION ALL
SELECT id FROM schedule WHERE state NOT IN ('active', 'paused')

-- name: Stretch
SELECT lane_id, version, first, last FROM lane_summary
UNION ALL
SELECT lane_id, version, first, last FROM lane_cut
ORDER BY 1, 2

-- name: Head
SELECT lane.id, coalesce(version, 0), max(coalesce(summarised_until, 0), coalesce(floor, 0)), transcript,
  (SELECT count(*) FROM transcript WHERE lane_id = lane.id AND position BETWEEN 1 AND lane.transcript),
  coalesce((
    SELECT role FROM transcript
    WHERE lane_id = lane.id AND position = 1 + max(coalesce(summarised_until, 0), coalesce(floor, 0))
  ), ''),
  (SELECT count(*) FROM lane_summary WHERE lane_id = lane.id AND version = summary AND trim(text) <> '') = 1
    OR summary IS NULL
FROM lane LEFT JOIN lane_context ON lane_context.lane_id = lane.id

-- name: damage
PRAGMA integrity_check

-- name: open
WITH RECURSIVE reviewed(id) AS (
  SELECT id FROM task WHERE state = 'needs_review'
  UNION SELECT task_id FROM task_after JOIN reviewed ON reviewed.id = after_id
)
SELECT (SELECT count(*) FROM lane WHERE batched < head)
  + (SELECT count(*) FROM batch WHERE state IN ('queued', 'leased'))
  + (SELECT count(*) FROM reply WHERE state IN ('sending', 'unknown') OR (state = 'pending' AND url IS NOT NULL))
  + (SELECT count(*) FROM episode_due)
  + (SELECT count(*) FROM summary_due)
  + (SELECT count(*) FROM task WHERE state IN ('pending', 'running') OR remembered = 0
      OR (state = 'blocked' AND id NOT IN (SELECT id FROM reviewed)))
  + (SELECT count(*) FROM delivery WHERE subscriber = 'ledger' AND state IN ('pending', 'processing'))
  + (SELECT count(*) FROM journal WHERE id > (SELECT reached FROM subscription WHERE name = 'ledger'))

-- name: committed
SELECT count(*) FROM turn WHERE state = 'committed'

-- name: verdicts
SELECT count(DISTINCT action) FROM batch

-- name: dead
SELECT id FROM batch WHERE state = 'dead' ORDER BY id DESC LIMIT 32

-- name: done
SELECT id FROM batch WHERE state = 'done' ORDER BY id DESC LIMIT 1

-- name: unseen
SELECT id FROM reply WHERE state = 'pending' AND url IS NULL ORDER BY id DESC LIMIT 4

-- name: undelivered
SELECT id FROM reply WHERE state = 'dead' ORDER BY id DESC LIMIT 4

-- name: replied
SELECT id FROM reply WHERE state = 'sent' ORDER BY id DESC LIMIT 1

-- name: shown_turn
SELECT turn_id FROM injection ORDER BY turn_id DESC, memory_id LIMIT 1

-- name: shown_memory
SELECT memory_id FROM injection ORDER BY turn_id DESC, memory_id LIMIT 1

-- name: filled
SELECT count(*) FROM slot WHERE state = 'filled'

-- name: commanded
SELECT count(*) FROM journal WHERE topic = 'command.executed'

-- name: summarised
SELECT count(*) FROM lane_context WHERE summary IS NOT NULL

-- name: first_vectors
INSERT INTO sqlite_sequence (name, seq)
SELECT 'vector', 0 WHERE NOT EXISTS (SELECT 1 FROM sqlite_sequence WHERE name = 'vector')

-- name: many_vectors
UPDATE sqlite_sequence SET seq = ((seq + 4) / 1024 + 1) * 1024 - 4 WHERE name = 'vector'

-- name: parked_sessions
SELECT id FROM session WHERE collection = 'parked' LIMIT 4

-- name: unread_sessions
SELECT session.id FROM session JOIN lane ON lane.id = session.lane_id
WHERE session.ended_at IS NULL AND lane.transcript > coalesce(session.invalidated_at, session.processed_until, 0)
ORDER BY session.id DESC LIMIT 1
