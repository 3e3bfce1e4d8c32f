-- A former owner holds its batch again.
UPDATE batch SET state = 'leased', fence = :fence WHERE id = :batch;
UPDATE turn SET state = 'open' WHERE id = :turn
