-- Commands that were carried out: the turn that did it, and which.
SELECT correlation_id, json_extract(payload, '$.name') FROM journal WHERE topic = 'command.executed' ORDER BY id
