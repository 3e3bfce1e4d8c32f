"""Lanes: whose turn it is."""
