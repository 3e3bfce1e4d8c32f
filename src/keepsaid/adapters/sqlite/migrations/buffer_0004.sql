-- Batches that wait for a person, counted by channel.
CREATE INDEX batch_for_person ON batch (lane_id) WHERE state IN ('review', 'dead');
