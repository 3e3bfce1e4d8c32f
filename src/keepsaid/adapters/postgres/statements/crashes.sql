-- name: running_processes
SELECT owner, started_at, kept_until, may_lead,
  CASE WHEN kept_until < extract(epoch FROM clock_timestamp()) * 1000 THEN 1 ELSE 0 END
FROM life WHERE state = 'running' ORDER BY id
