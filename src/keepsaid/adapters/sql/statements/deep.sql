-- name: messages
SELECT /*part message*/
FROM message JOIN lane ON lane.id = message.lane_id WHERE message.id > ?1 ORDER BY message.id LIMIT ?2

-- name: lanes_astray
WITH last (lane_id, number, id) AS (SELECT lane_id, max(number), id FROM message GROUP BY lane_id),
routed (lane_id, number) AS (SELECT lane_id, max(last) FROM batch GROUP BY lane_id),
meant (lane_id, head, last_id, batched) AS (
  SELECT lane.id,
    coalesce(nullif(max(coalesce(last.number, 0), lane.pruned), 0), lane.head),
    iif(last.number > lane.pruned, last.id, lane.last_id),
    coalesce(nullif(max(coalesce(routed.number, 0), lane.pruned), 0), lane.batched)
  FROM lane LEFT JOIN last ON last.lane_id = lane.id LEFT JOIN routed ON routed.lane_id = lane.id
)
SELECT lane.id, meant.head, meant.last_id, meant.batched FROM lane JOIN meant ON meant.lane_id = lane.id
WHERE lane.head <> meant.head OR lane.last_id IS NOT meant.last_id OR lane.batched <> meant.batched
  OR (lane.due_at IS NULL) <> (lane.head = lane.batched)

-- name: mend_lane
UPDATE lane SET head = ?2, last_id = ?3, batched = ?4, due_at = iif(?2 > ?4, coalesce(due_at, 0), NULL),
  oldest_at = iif(?2 > ?4, coalesce(oldest_at, 0), NULL), newest_at = iif(?2 > ?4, coalesce(newest_at, 0), NULL)
WHERE id = ?1

-- name: ready_astray
WITH open (lane_id, batch_id) AS (
  SELECT lane_id, id FROM batch AS head
  WHERE state IN ('queued', 'leased') AND state = 'queued' AND NOT EXISTS (
    SELECT 1 FROM batch WHERE batch.lane_id = head.lane_id AND batch.state IN ('queued', 'leased')
      AND (batch.state = 'leased' OR (batch.first < head.first AND /*part may_start*/))
  ) AND EXISTS (SELECT 1 FROM batch WHERE batch.id = head.id AND /*part may_start*/)
)
SELECT lane_id FROM (SELECT * FROM open EXCEPT SELECT lane_id, batch_id FROM ready) AS found
UNION
SELECT lane_id FROM (SELECT lane_id, batch_id FROM ready EXCEPT SELECT * FROM open) AS found

-- name: text_missing
SELECT
  (
    SELECT count(*) FROM memory
    WHERE state IN ('active', 'superseded') AND kind <> 'bulletin'
    AND NOT EXISTS (SELECT 1 FROM memory_piece WHERE memory_id = memory.id)
  )
  + abs((SELECT count(*) FROM memory_piece) - (SELECT count(*) FROM memory_text_docsize))

-- name: mark_stale
INSERT OR IGNORE INTO memory_stale (memory_id)
SELECT id FROM memory
WHERE state IN ('active', 'superseded') AND kind <> 'bulletin'
AND NOT EXISTS (SELECT 1 FROM memory_piece WHERE memory_id = memory.id)

-- name: check_text
INSERT INTO memory_text (memory_text, rank) VALUES ('integrity-check', 1)

-- name: rebuild_text
INSERT INTO memory_text (memory_text) VALUES ('rebuild')

-- name: tally_astray
SELECT what, name, n FROM (
  SELECT 'batch' AS what, state AS name, count(*) AS n FROM batch WHERE state NOT IN ('queued', 'leased') GROUP BY state
  UNION ALL
  SELECT 'reply', state, count(*) FROM reply WHERE state NOT IN ('pending', 'sending', 'unknown') GROUP BY state
  UNION ALL
  SELECT 'heard', channel, sum(head) FROM lane GROUP BY channel
  UNION ALL
  SELECT 'routed', channel, sum(batched) FROM lane GROUP BY channel
) AS counted
WHERE n <> coalesce((SELECT tally.n FROM tally WHERE tally.what = counted.what AND tally.name = counted.name), 0)

-- name: mend_tally
INSERT INTO tally (what, name, n) VALUES (?1, ?2, ?3) ON CONFLICT (what, name) DO UPDATE SET n = excluded.n

-- name: spaces_astray
SELECT space.id FROM space
WHERE EXISTS (
  SELECT 1 FROM memory_piece AS piece
  WHERE piece.id <= space.reached
  AND NOT EXISTS (SELECT 1 FROM vector WHERE vector.piece_id = piece.id AND vector.space = space.id)
)

-- name: fill_again
UPDATE space SET reached = 0 WHERE id = ?1

-- name: blocks_astray
SELECT block.space, block.number FROM vector_block AS block
WHERE block.vectors <> (
  SELECT count(*) FROM vector
  WHERE vector.space = block.space AND vector.id >= block.number * 1024 AND vector.id < (block.number + 1) * 1024
)

-- name: stretches_astray
SELECT stretch.number FROM word_stretch AS stretch
WHERE stretch.whole AND (
  stretch.pieces <> (
    SELECT count(*) FROM memory_piece WHERE id >= stretch.number * 16384 AND id < (stretch.number + 1) * 16384
  )
  OR (stretch.pieces > 0) <> EXISTS (
    SELECT 1 FROM word_block WHERE id >= stretch.number * 256 AND id < (stretch.number + 1) * 256
  )
)

-- name: drop_stretch
DELETE FROM word_stretch WHERE number = ?1

-- name: drop_block
DELETE FROM vector_block WHERE space = ?1 AND number = ?2
