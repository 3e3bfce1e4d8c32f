"""The command line: one file a noun."""
