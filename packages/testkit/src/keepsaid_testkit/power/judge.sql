-- find: message
SELECT id FROM message

-- find: routed
SELECT channel, account, conversation, key, message.number FROM lane JOIN message ON message.lane_id = lane.id
WHERE message.number <= lane.batched

-- find: turn
SELECT id FROM turn

-- find: step
SELECT turn_id, n FROM step

-- find: finished
SELECT turn_id, n FROM step WHERE state = 'finished'

-- find: answered
SELECT id FROM turn WHERE state = 'committed'

-- find: shown
SELECT id FROM reply WHERE state = 'sent'

-- look: said
SELECT id, text, payload, content_hash, key_hash FROM message

-- wrong: a lane does not count its messages
SELECT lane.id FROM lane LEFT JOIN message ON message.lane_id = lane.id GROUP BY lane.id
HAVING count(message.id) <> head OR coalesce(max(message.number), 0) <> head OR coalesce(min(message.number), 1) <> 1

-- wrong: a lane does not end with its last message
SELECT lane.id FROM lane LEFT JOIN message ON message.id = lane.last_id
WHERE message.lane_id IS NOT lane.id OR message.number IS NOT lane.head

-- wrong: a message does not follow the one before it
SELECT message.id FROM message LEFT JOIN message AS previous ON previous.id = message.previous_id
WHERE iif(message.number = 1, message.previous_id IS NOT NULL,
  previous.lane_id IS NOT message.lane_id OR previous.number IS NOT message.number - 1)

-- wrong: a marked message is not there, or one is not marked
SELECT message.id FROM message LEFT JOIN lane_mark ON lane_mark.message_id = message.id
WHERE (message.number % 64 = 0) <> (lane_mark.number IS NOT NULL AND lane_mark.number = message.number)

-- wrong: a folded key is not in the index
SELECT message.id FROM message JOIN message_keyed LEFT JOIN message_key ON message_key.key = message.key_hash
WHERE message.id <= message_keyed.until AND message.key_hash IS NOT NULL
  AND (message_key.message_id IS NOT message.id OR message_key.content IS NOT message.content_hash)

-- wrong: a key is of no message
SELECT message_key.message_id FROM message_key LEFT JOIN message ON message.id = message_key.message_id
WHERE message.id IS NULL

-- wrong: the batches of a lane do not follow one another up to where it is routed
SELECT lane.id FROM lane LEFT JOIN (
  SELECT lane_id, first, last, coalesce(lag(last) OVER (PARTITION BY lane_id ORDER BY first), 0) AS before FROM batch
) AS span ON span.lane_id = lane.id
GROUP BY lane.id
HAVING coalesce(max(span.last), 0) <> lane.batched OR max(span.before + 1 <> span.first OR span.last < span.first)

-- wrong: a batch does not end with its last message
SELECT batch.id FROM batch LEFT JOIN message ON message.id = batch.last_id
WHERE message.lane_id IS NOT batch.lane_id OR message.number IS NOT batch.last

-- wrong: a batch that is done has not one committed turn
SELECT batch.id FROM batch LEFT JOIN turn ON turn.batch_id = batch.id AND turn.state = 'committed'
GROUP BY batch.id HAVING count(turn.id) <> (batch.state = 'done' AND batch.action = 'forward')

-- wrong: a committed turn has not its transcript
SELECT turn.id FROM turn JOIN batch ON batch.id = turn.batch_id
LEFT JOIN transcript ON transcript.turn_id = turn.id
WHERE turn.state = 'committed' GROUP BY turn.id HAVING count(transcript.position) <> batch.last - batch.first + 2

-- wrong: a transcript is of a turn that is not committed
SELECT DISTINCT transcript.turn_id FROM transcript LEFT JOIN turn ON turn.id = transcript.turn_id
WHERE turn.state IS NOT 'committed'

-- wrong: a transcript has holes
SELECT lane.id FROM lane LEFT JOIN transcript ON transcript.lane_id = lane.id GROUP BY lane.id
HAVING count(transcript.position) <> lane.transcript OR coalesce(max(transcript.position), 0) <> lane.transcript

-- wrong: a committed turn has not one reply, one line in the journal, work for its episode
SELECT turn.id FROM turn WHERE (turn.state = 'committed') <> (SELECT count(*) FROM reply WHERE reply.turn_id = turn.id)
  OR (turn.state = 'committed') <> (
    SELECT count(*) FROM journal WHERE correlation_id = CAST(turn.id AS TEXT) AND topic = 'turn.committed'
  )
  OR (turn.state = 'committed') <> (SELECT count(*) FROM episode_due WHERE episode_due.turn_id = turn.id)

-- wrong: a leased batch has no open turn, or an open turn no batch to answer
SELECT batch.id FROM batch LEFT JOIN turn ON turn.batch_id = batch.id AND turn.state = 'open'
GROUP BY batch.id
HAVING (batch.state = 'leased' AND count(turn.id) <> 1) OR (batch.state NOT IN ('leased', 'queued') AND count(turn.id) > 0)

-- wrong: a step is of no turn, or a finished one has no output
SELECT step.turn_id FROM step LEFT JOIN turn ON turn.id = step.turn_id
WHERE turn.id IS NULL OR (step.state = 'finished') <> (step.output IS NOT NULL)

-- wrong: a lane with work does not say so
SELECT lane.id FROM lane LEFT JOIN ready ON ready.lane_id = lane.id LEFT JOIN (
  SELECT lane_id, min(first), id, state FROM batch WHERE state IN ('queued', 'leased') GROUP BY lane_id
) AS open ON open.lane_id = lane.id
WHERE ready.batch_id IS NOT iif(open.state = 'queued', open.id, NULL)

-- wrong: a lane that waits is not due, or one that does not is
SELECT id FROM lane WHERE (head > batched) <> (due_at IS NOT NULL)
