-- name: range
WITH RECURSIVE /*part of_batch*/
SELECT /*part message*/
FROM walk JOIN message ON message.id = walk.id JOIN lane ON lane.id = message.lane_id ORDER BY message.number

-- name: message
SELECT /*part message*/
FROM message JOIN lane ON lane.id = message.lane_id WHERE message.id = ?

-- name: reply
SELECT /*part reply*/
FROM reply JOIN lane ON lane.id = reply.lane_id WHERE reply.id = ?

-- name: trace
SELECT body FROM trace WHERE turn_id = ?
