-- name: check
WITH taken AS (UPDATE writer_place SET holder = ?1 WHERE holder <> ?1 RETURNING 1)
SELECT CAST(CAST(pg_current_xact_id() AS TEXT) AS bigint), EXISTS (SELECT 1 FROM taken),
  EXISTS (SELECT 1 FROM life WHERE owner = ?2 AND state = 'running'), oldest.part, oldest.version
FROM (SELECT 1) AS one LEFT JOIN keepsaid_schema AS oldest ON oldest.part IN ('buffer from', 'memory from')

-- name: hold
SELECT pg_advisory_xact_lock(?1)

-- name: alive
SELECT owner FROM life WHERE state = 'running' AND kept_until > extract(epoch FROM clock_timestamp()) * 1000 ORDER BY id

-- name: outcome
SELECT pg_xact_status(CAST(CAST(?1 AS TEXT) AS xid8))

-- name: server_process
SELECT pg_backend_pid()

-- name: try_lock
SELECT pg_try_advisory_lock(?1)

-- name: end_former
SELECT pg_terminate_backend(pid) FROM pg_stat_activity
WHERE application_name = ?1 AND usename = current_user AND pid <> pg_backend_pid()

-- name: key_proof
SELECT proof FROM tombstone_key

-- name: keep_proof
INSERT INTO tombstone_key (one, proof) VALUES (1, ?1)

-- name: our_tables
SELECT string_agg(quote_ident(relname), ', ') FROM pg_class
WHERE relnamespace = CAST(current_schema AS regnamespace) AND relkind = 'r'

-- name: wait_for_place
SET lock_timeout TO '6s'

-- name: end_silent
SELECT pg_terminate_backend(activity.pid)
FROM pg_locks AS held JOIN pg_stat_activity AS activity ON activity.pid = held.pid
WHERE held.locktype = 'advisory' AND held.granted AND held.classid = 0 AND held.objid = ?1 AND held.objsubid = 1
AND activity.datname = current_database() AND activity.wait_event_type = 'Client'
AND activity.xact_start < clock_timestamp() - CAST('5s' AS interval)
