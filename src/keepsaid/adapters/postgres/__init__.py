"""PostgreSQL: the same commits and queries as on SQLite, for many processes on many machines."""
