-- name: take
SELECT pg_advisory_xact_lock(?1), CAST(CAST(pg_current_xact_id() AS TEXT) AS INTEGER)

-- name: pass
UPDATE writer_place SET holder = ?1 WHERE holder <> ?1

-- name: outcome
SELECT pg_xact_status(CAST(CAST(?1 AS TEXT) AS xid8))

-- name: keep_up
SELECT pg_try_advisory_lock(?1)
