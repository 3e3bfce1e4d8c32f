"""The machine itself: clock, ids, lock and files."""
