-- name: buffer
SELECT count(*) FROM message

-- name: memory
SELECT count(*) FROM memory WHERE state <> 'forgotten'
