-- A summary swallows one more record.
UPDATE lane_context SET summarised_until = summarised_until + 1 WHERE lane_id =
  (SELECT id FROM lane WHERE channel = :channel AND account = :account AND conversation = :conversation AND key = :key)
