-- Batches that wait for a person, counted by channel.
CREATE INDEX batch_for_person ON batch (lane_id) WHERE state IN ('review', 'dead');

-- Tasks that turns of a lane made, by their end: a prompt names those that ended lately.
CREATE INDEX task_ended_beside ON task (lane_id, ended_at) WHERE turn_id IS NOT NULL;
