"""The operational store: commits and queries by subject."""
