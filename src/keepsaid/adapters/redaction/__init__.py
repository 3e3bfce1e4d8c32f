"""Redaction: one table of patterns, and the secrets of this instance in every encoding."""
