-- name: take_node
SELECT pg_try_advisory_lock(CAST(?1 AS int4), CAST(?2 AS int4))

-- name: now_ms
SELECT CAST(extract(epoch FROM clock_timestamp()) * 1000 AS bigint)

-- name: listen
LISTEN keepsaid

-- name: look
SELECT 1

-- name: notify
SELECT pg_notify('keepsaid', ?1)
