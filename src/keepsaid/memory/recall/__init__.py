"""Recall: search in memory for a turn."""
