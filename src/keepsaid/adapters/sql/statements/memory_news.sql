-- name: waiting
SELECT untold.n, untold.memory_id, untold.what, coalesce(memory.kind, ''), memory.superseded_by
FROM memory_untold AS untold LEFT JOIN memory ON memory.id = untold.memory_id AND memory.state <> 'forgotten'
ORDER BY untold.n LIMIT ?

-- name: told
DELETE FROM memory_untold WHERE n <= ?
