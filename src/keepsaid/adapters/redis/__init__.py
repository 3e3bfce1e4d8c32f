"""Redis: carries wake-ups between processes that share a database, and keeps nothing."""
