-- The keys of messages are indexed as they come: nothing that one process remembers would be right for another.
UPDATE message_keyed SET until = 9223372036854775807;
