-- name: chained
/*part chained*/
FROM json_each/*texts*/(?1) AS wanted JOIN message ON message.id = (
  SELECT one.id FROM message AS one JOIN lane AS place ON place.id = one.lane_id
  WHERE one.provider_id = wanted.value AND place.channel = ?2 AND place.account = ?3
    AND (place.conversation = ?4 OR ?4 = '')
  ORDER BY one.id DESC LIMIT 1
)
JOIN lane ON lane.id = message.lane_id
ORDER BY message.id DESC

-- name: versions
/*part chained*/
FROM message JOIN lane ON lane.id = message.lane_id
WHERE message.provider_id = ?1 AND lane.channel = ?2 AND lane.account = ?3 AND lane.conversation = ?4
ORDER BY message.id DESC LIMIT ?5

-- name: newest
/*part chained*/
FROM lane JOIN message ON message.id = lane.last_id
WHERE lane.channel = ?1 AND lane.account = ?2 AND lane.conversation = ?3 AND substr(lane.key, 1, 9) <> 'recorded:'
ORDER BY lane.last_id DESC LIMIT 1

-- name: chained_one
/*part chained*/
FROM message JOIN lane ON lane.id = message.lane_id
WHERE message.id = ?1 AND lane.channel = ?2 AND lane.account = ?3

-- name: home
SELECT message.lane_id, lane.transcript, message.number FROM message JOIN lane ON lane.id = message.lane_id
WHERE message.id = ?1 AND lane.channel = ?2 AND lane.account = ?3 AND lane.conversation = ?4

-- name: shown_at
SELECT position, turn_id FROM transcript WHERE ref = 'message:' || ?2 AND ref <> '' AND lane_id = ?1

-- name: shown_again
SELECT position, turn_id FROM transcript WHERE lane_id = ?1 AND turn_id = (
  SELECT turn.id FROM message JOIN batch ON batch.lane_id = message.lane_id AND message.number BETWEEN batch.first AND batch.last
  JOIN turn ON turn.batch_id = batch.id WHERE message.id = ?2 AND message.event = 'regenerate'
  ORDER BY turn.id DESC LIMIT 1
)
ORDER BY position LIMIT 1

-- name: answered_until
SELECT coalesce(
  (SELECT min(position) - 1 FROM transcript WHERE lane_id = ?1 AND turn_id = ?2 AND position > ?3 AND role = 'user'),
  (SELECT max(position) FROM transcript WHERE lane_id = ?1 AND turn_id = ?2)
)

-- name: between
SELECT position FROM transcript WHERE lane_id = ?1 AND position > ?2 AND position <= ?3

-- name: copy_records
INSERT INTO transcript (lane_id, position, session_id, turn_id, role, speaker, text, attached, calls, call_id, ref,
  created_at, sender, trust, direct, unprompted)
SELECT ?1, row_number() OVER (ORDER BY position), session_id, turn_id, role, speaker, text, attached, calls, call_id, ref,
  created_at, sender, trust, direct, unprompted
FROM transcript
WHERE lane_id = ?2 AND position > ?3 AND position <= ?4 AND position NOT IN (SELECT value FROM carray(?5))
  AND (?6 = 1 OR NOT EXISTS (SELECT 1 FROM session WHERE session.id = transcript.session_id AND session.incognito = 1))

-- name: begin_incognito
INSERT INTO incognito_span (lane_id, first) VALUES (?1, 1) ON CONFLICT DO NOTHING

-- name: count_records
UPDATE lane SET transcript = (SELECT count(*) FROM transcript WHERE lane_id = ?1) WHERE id = ?1

-- name: summary
SELECT text, kind, model, messages, chars, created_at, trust FROM lane_summary WHERE lane_id = ?1 AND version = ?2
