-- name: ready
WITH RECURSIVE level (priority) AS (
  SELECT min(priority) FROM ready WHERE later = 0 AND suspect = ?1
  UNION ALL
  SELECT (SELECT min(priority) FROM ready WHERE later = 0 AND suspect = ?1 AND ready.priority > level.priority)
  FROM level WHERE level.priority IS NOT NULL
)
SELECT best.batch_id, best.priority, best.first_at, best.ready_at
FROM level CROSS JOIN LATERAL (
  SELECT batch_id, priority, first_at, ready_at FROM ready WHERE later = 0 AND suspect = ?1 AND priority = level.priority
  ORDER BY first_at, batch_id LIMIT ?2
) AS best
