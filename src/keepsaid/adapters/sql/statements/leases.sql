-- name: windows_after_clock_back
UPDATE lane SET oldest_at = oldest_at - (newest_at - ?1), newest_at = ?1, due_at = due_at - (newest_at - ?1)
WHERE due_at IS NOT NULL AND newest_at > ?1

-- name: renew
UPDATE batch SET lease_until = ?3 WHERE id = ?1 AND fence = ?2 AND state = 'leased'

-- name: held
SELECT state, lane_id, attempts FROM batch WHERE id = ?1 AND fence = ?2 AND state = 'leased'

-- name: state
SELECT state, lane_id, pruned_at FROM batch WHERE id = ?

-- name: release
UPDATE batch SET state = ?2, owner = NULL, lease_until = NULL, alone = 0, ready_at = iif(?3 > 0, ?3, ready_at), later = iif(?3 > 0, 1, 0),
  deferrals = deferrals + ?4, deferred_from = iif(?4 > 0, coalesce(deferred_from, ?3), deferred_from),
  error = iif(?5 = '', error, ?5) WHERE id = ?1

-- name: clear
UPDATE batch SET crashes = ?2, survived = survived + ?2, attempts = attempts - charges, charges = 0, trial_deaths = 0,
  trials_ms = 0, trial_after_ms = 0 WHERE id = ?1

-- name: settle
UPDATE batch SET state = ?2, owner = NULL, lease_until = NULL, alone = 0, attempts = attempts + ?3, crashes = 0,
  charges = 0, trial_deaths = 0, trials_ms = 0, trial_after_ms = 0, error = ?4, ready_at = ?5, later = 1, ended_at = ?6 WHERE id = ?1

-- name: owned
SELECT id, lane_id, state FROM batch INDEXED BY batch_leased WHERE state = 'leased' AND owner = ? ORDER BY id

-- name: expired
SELECT id, lane_id, state FROM batch INDEXED BY batch_leased WHERE state = 'leased' AND lease_until <= ? ORDER BY id

-- name: parked_with
SELECT id, state FROM batch
WHERE steered IN (SELECT id FROM turn WHERE batch_id = ?) AND state = 'review' AND pruned_at IS NULL ORDER BY id

-- name: requeue
UPDATE batch SET state = ?2, action = 'forward', attempts = 0, crashes = 0, deferrals = 0, ready_at = ?3, later = 1, ended_at = NULL,
  charges = 0, trial_deaths = 0, trials_ms = 0, trial_after_ms = 0, survived = 0, error = '', reason = ?4, steered = NULL, steered_at = NULL, deferred_from = NULL WHERE id = ?1
