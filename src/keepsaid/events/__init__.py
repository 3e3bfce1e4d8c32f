"""Events: topics, schemas and the journal, which each subscriber reads at its own position."""
