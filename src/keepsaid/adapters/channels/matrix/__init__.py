"""Matrix: plain rooms of one account, read by /sync and answered by /send; encrypted rooms are named and not read."""
