"""SQLite through apsw: one writer thread with group commit, and read-only readers."""
