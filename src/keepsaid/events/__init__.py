"""What happened: the journal is read for subscribers, and each is told by itself."""
