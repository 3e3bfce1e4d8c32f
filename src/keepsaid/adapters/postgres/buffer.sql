-- The keys of messages are indexed as they come: nothing that one process remembers would be right for another.
UPDATE message_keyed SET until = 9223372036854775807;

-- What a home proves with that it has the key of the tombstones; the key itself is in no database.
CREATE TABLE tombstone_key (
  one bigint PRIMARY KEY CHECK (one = 1),
  proof bytea NOT NULL
);
