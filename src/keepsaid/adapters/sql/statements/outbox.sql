-- name: keep
INSERT INTO reply (
  id, lane_id, channel, account, conversation, turn_id, batch_id, state, notice, text, url, reply_to, next_at, created_at
) SELECT ?1, lane.id, channel, account, conversation, ?3, ?4, 'pending', ?5, ?6, ?7, ?8, ?9, ?9 FROM lane WHERE lane.id = ?2

-- name: about
UPDATE reply SET about_task = ?2 WHERE id = ?1

-- name: lane_of_batch
SELECT lane_id FROM batch WHERE id = ?

-- name: lane_of_task
SELECT lane_id FROM task WHERE id = ?

-- name: batch_of_task
SELECT id FROM batch WHERE task_id = ? ORDER BY id DESC LIMIT 1

-- name: owner_lane
SELECT lane_id FROM message INDEXED BY message_owner WHERE trust = 'owner' AND direct = 1 ORDER BY id DESC LIMIT 1

-- name: next_replies
SELECT id, state FROM (
  SELECT * FROM (
    SELECT id, state, next_at FROM reply AS first
    WHERE state IN ('pending', 'unknown') AND state = 'pending' AND next_at <= ?1 AND url IS NOT NULL AND NOT EXISTS (
      /*part before_it*/
        AND (earlier.url IS NOT NULL OR earlier.channel IN (SELECT value FROM json_each/*texts*/(?2)))
    )
    ORDER BY next_at, id LIMIT ?3
  ) AS found
  UNION
  SELECT * FROM (
    SELECT id, state, next_at FROM reply AS first
    WHERE state IN ('pending', 'unknown') AND state = 'pending' AND next_at <= ?1
      AND channel IN (SELECT value FROM json_each/*texts*/(?2)) AND NOT EXISTS (
        /*part before_it*/
      )
    ORDER BY next_at, id LIMIT ?3
  ) AS found
) AS found
ORDER BY next_at, id LIMIT ?3

-- name: take
UPDATE reply SET state = ?2, owner = ?3, fence = fence + 1, attempts = attempts + 1 WHERE id = ?1

-- name: tries
SELECT move.reply_id, sum(iif(move.verb = 'doubt' AND move.detail <> ?2, 1, 0)), min(move.at)
FROM (
  SELECT wanted.value AS reply_id, coalesce(
    (SELECT max(n) FROM reply_move WHERE reply_id = wanted.value AND verb = 'requeue'), 0
  ) AS requeued
  FROM carray(?1) AS wanted
) AS round CROSS JOIN reply_move AS move ON move.reply_id = round.reply_id AND move.n > round.requeued
GROUP BY move.reply_id

-- name: keep_move
INSERT INTO reply_move (reply_id, n, verb, at, detail)
SELECT ?1, coalesce(max(n), 0) + 1, ?2, ?3, ?4 FROM reply_move WHERE reply_id = ?1

-- name: held
SELECT state FROM reply WHERE id = ? AND fence = ?

-- name: settle
UPDATE reply SET state = ?2, next_at = max(next_at, ?3), detail = ?4, provider_id = coalesce(?5, provider_id),
  ended_at = ?6, owner = NULL, possible_duplicate = max(possible_duplicate, ?7) WHERE id = ?1
RETURNING id, state, turn_id, batch_id, attempts

-- name: uncharge
UPDATE reply SET attempts = attempts - 1 WHERE id = ?

-- name: sending_elsewhere
SELECT id, state FROM reply WHERE state = 'sending' AND /*part is_dead*/

-- name: lives_beside
SELECT 1 FROM life INDEXED BY life_running WHERE state = 'running' AND owner <> ? LIMIT 1

-- name: due_now
UPDATE reply SET next_at = ?1 WHERE state IN ('pending', 'sending', 'unknown') AND next_at > ?1

-- name: unknown
SELECT id, state, channel FROM reply WHERE state = 'unknown' AND next_at <= ?

-- name: state
SELECT state, detail FROM reply WHERE id = ?

-- name: send_again
UPDATE reply SET state = ?2, attempts = 0, next_at = ?3, detail = '', ended_at = NULL, possible_duplicate = 1 WHERE id = ?1
