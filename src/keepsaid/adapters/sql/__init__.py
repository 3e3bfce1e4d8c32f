"""Commits and queries in SQL, over a session of whatever database holds the store."""
