-- name: message
message.id, lane.channel, lane.account, lane.conversation, lane.key, message.number, sender, sender_name, direct,
  trust, external_id, provider_id, reply_to, topic, reply_url, event, payload, text, message.priority, received_at,
  content_hash, seal, forgotten_at

-- name: reply
reply.id, lane.channel, lane.account, lane.conversation, lane.key, turn_id, state, reply.text, notice, url,
  reply_to, fence, attempts, possible_duplicate, created_at, detail

-- name: before_it
SELECT 1 FROM reply AS earlier
WHERE earlier.state IN ('pending', 'sending', 'unknown') AND earlier.channel = first.channel
  AND earlier.account = first.account AND earlier.conversation = first.conversation AND earlier.id < first.id

-- name: is_dead
owner <> ?1 AND owner NOT IN (
  SELECT life.owner FROM life INDEXED BY life_running WHERE life.state = 'running' AND life.owner <> ?1
)

-- name: back
UNION ALL
SELECT message.id, message.number, message.previous_id, walk.first
FROM walk JOIN message ON message.id = walk.previous_id WHERE walk.number > walk.first

-- name: of_batch
walk (id, number, previous_id, first) AS (
  SELECT message.id, message.number, message.previous_id, batch.first
  FROM batch JOIN message ON message.id = batch.last_id WHERE batch.id = ?1
  /*part back*/
)

-- name: records_after
SELECT role, text, calls, call_id, speaker, attached, ref, position, trust FROM transcript
WHERE lane_id = ?1 AND position > ?2 AND unprompted = 0
  AND (role <> 'assistant' OR (SELECT model FROM turn WHERE turn.id = transcript.turn_id) IS DISTINCT FROM 'none')

-- name: lane_line
SELECT lane.channel, lane.account, lane.conversation, lane.key,
  coalesce((SELECT received_at FROM message WHERE message.id = lane.last_id), 0),
  lane.head - lane.batched + coalesce(
    (SELECT sum(last - first + 1) FROM batch WHERE batch.lane_id = lane.id AND state IN ('queued', 'leased')), 0),
  coalesce((SELECT state FROM session WHERE session.lane_id = lane.id ORDER BY id DESC LIMIT 1), '-'),
  coalesce(lane_context.summary, 0),
  lane.transcript - max(coalesce(lane_context.summarised_until, 0), coalesce(lane_context.floor, 0)),
  EXISTS (
    SELECT 1 FROM paused_conversation AS paused
    WHERE paused.channel = lane.channel AND paused.account = lane.account AND paused.conversation = lane.conversation
  ),
  EXISTS (SELECT 1 FROM incognito_span WHERE incognito_span.lane_id = lane.id AND last IS NULL)
FROM lane LEFT JOIN lane_context ON lane_context.lane_id = lane.id

-- name: task
task.id, task.key, task.kind, task.state, task.turn_id, task.depth, task.rule, task.description, task.terms, task.outside,
  task.messages, task.priority, task.ready_at, task.fence, task.attempts, task.crashes, task.deferrals, task.deferred_from,
  task.status, task.result, task.reason, task.tokens_in, task.tokens_out, task.cost_micros, task.created_at,
  task.started_at, task.ended_at, task.expires_at,
  (SELECT json_group_array(after_id) FROM task_after WHERE task_after.task_id = task.id),
  lane.channel, lane.account, lane.conversation, lane.key
FROM task LEFT JOIN lane ON lane.id = task.lane_id

-- name: schedule
schedule.id, source, name, timing, what, text, channel, account, conversation, key, url, direct, trust, urgent,
  whenever, state, next_at, failures, reason, created_at

-- name: run
schedule_id, due_at, state, ready_at, output, channel, account, conversation, key, url, direct, message_id, reply_id,
  reason, fired_at, ended_at, task_id

-- name: record_holds
speaker <> '' OR sender <> '' OR text <> '' OR attached <> '' OR calls <> '' OR call_id <> ''

-- name: may_start
(batch.rule = 'command (paused)' OR NOT EXISTS (
  SELECT 1 FROM lane AS its CROSS JOIN paused_conversation AS paused
  ON its.channel = paused.channel AND its.account = paused.account AND its.conversation = paused.conversation
  WHERE its.id = batch.lane_id
))

-- name: incognito
EXISTS (
  SELECT 1 FROM incognito_span AS span
  WHERE span.lane_id = batch.lane_id AND span.first <= batch.last AND coalesce(span.last, batch.last) >= batch.first
)

-- name: entity_names
SELECT json_group_array(name) FROM (
  SELECT mention.name FROM mention CROSS JOIN memory ON memory.id = mention.memory_id
  WHERE mention.entity_id = entity.id AND memory.state IN ('active', 'superseded') AND /*heard*/
  GROUP BY mention.name ORDER BY count(*) DESC, length(mention.name) DESC, mention.name LIMIT 8
) AS found

-- name: chained
SELECT message.id, lane.channel, lane.account, lane.conversation, lane.key, message.number, lane.head,
  message.provider_id, coalesce(message.external_id, ''), message.received_at
