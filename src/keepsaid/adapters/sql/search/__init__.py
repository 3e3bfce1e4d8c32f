"""Search of memory: by words, in pieces and blocks, and by vectors."""
