-- name: begin_life
INSERT INTO life (owner, state, started_at, due_ms, kept_until, may_lead, home)
VALUES (?1, 'running', ?2, ?3, ?4, ?5, ?6)
ON CONFLICT (owner) DO NOTHING

-- name: unended
SELECT owner, state, due_ms, trial_ms, kept_until, home FROM life INDEXED BY life_running
WHERE state = 'running' AND owner <> ? ORDER BY id

-- name: running_processes
SELECT owner, started_at, kept_until, may_lead, 0 FROM life INDEXED BY life_running WHERE state = 'running' ORDER BY id

-- name: leads
SELECT owner FROM life INDEXED BY life_running WHERE state = 'running' AND may_lead = 1 ORDER BY id LIMIT 1

-- name: end_life
UPDATE life SET state = ?2 WHERE owner = ?1

-- name: lives
SELECT iif(state = 'died_in_trial', trial_ms, lived_ms), state = 'died' FROM life WHERE state <> 'running' ORDER BY id

-- name: forget_lives
DELETE FROM life WHERE id <= (SELECT max(id) FROM life) - ?1 AND state <> 'running'

-- name: beat
UPDATE life SET lived_ms = ?2, due_ms = ?3, kept_until = ?4 WHERE owner = ?1 AND state = 'running'

-- Where nobody has said for so long that it lives, and this one now does, the database was away: all have as long again.
-- name: all_kept
UPDATE life SET kept_until = ?2 WHERE state = 'running'
AND EXISTS (SELECT 1 FROM life AS own WHERE own.owner = ?3 AND own.state = 'running')
AND NOT EXISTS (SELECT 1 FROM life AS kept INDEXED BY life_running WHERE kept.state = 'running' AND kept.kept_until >= ?1)

-- name: running
SELECT state FROM life WHERE owner = ? AND state = 'running'

-- name: waits_for_trial
SELECT 1 FROM ready WHERE later = 0 AND suspect = 2 LIMIT 1

-- name: in_flight
SELECT id, lane_id, state, owner, alone, first, last, requeued,
  attempts, crashes, trial_deaths, trials_ms, charges, trial_after_ms
FROM batch INDEXED BY batch_leased WHERE state = 'leased' AND owner <> ? ORDER BY id

-- name: crashed
UPDATE batch SET state = ?2, owner = NULL, lease_until = NULL, alone = 0, error = ?3, ended_at = ?4, ready_at = ?5,
  attempts = ?6, crashes = ?7, trial_deaths = ?8, trials_ms = ?9, charges = ?10, trial_after_ms = ?11 WHERE id = ?1

-- name: joined
SELECT joined.id FROM turn JOIN batch AS joined ON joined.steered = turn.id
WHERE turn.batch_id = ? AND turn.state = 'open' AND joined.state = 'queued' ORDER BY joined.first

-- name: suspect_too
UPDATE batch SET crashes = ?2, trial_after_ms = ?3 WHERE id IN (SELECT value FROM carray(?1)) AND state = 'queued'

-- name: second_part
INSERT INTO batch (
  id, lane_id, first, last, last_id, first_at, chars, state, action, rule, rule_version, reason, priority, ready_at,
  created_at, fence, attempts, crashes, trial_after_ms, survived, requeued, error,
  deferrals, deferred_from
)
SELECT ?2, lane_id, ?3, last, last_id, ?4, ?5, state, action, rule, rule_version, reason, priority, ready_at,
  created_at, fence, attempts, crashes, trial_after_ms, survived, requeued, error,
  deferrals, deferred_from
FROM batch WHERE id = ?1

-- name: first_part
UPDATE batch SET last = ?2, last_id = ?3, chars = ?4 WHERE id = ?1

-- name: verdict
SELECT action, rule, rule_version, reason FROM batch WHERE id = ?

-- name: acquit
UPDATE batch SET crashes = 0, trial_after_ms = 0
WHERE id IN (SELECT batch_id FROM ready WHERE later = 0 AND suspect > 0)
  AND state = 'queued' AND trial_deaths = 0 AND requeued = 0
RETURNING lane_id

-- name: buried
SELECT id, lane_id, state FROM batch INDEXED BY batch_charged
WHERE charges > 0 AND requeued = 0 AND state = 'dead' AND attempts = charges AND pruned_at IS NULL ORDER BY id LIMIT ?

-- name: requeue
UPDATE batch SET state = ?2, ready_at = ?3, later = 1, reason = ?4, trial_after_ms = ?5, crashes = ?6, requeued = 1,
  attempts = 0, charges = 0, trial_deaths = 0, trials_ms = 0, survived = 0, deferrals = 0, deferred_from = NULL,
  ended_at = NULL, error = '', steered = NULL, steered_at = NULL WHERE id = ?1
