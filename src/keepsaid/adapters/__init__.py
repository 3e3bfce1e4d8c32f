"""Adapters: the outside, each behind a port."""
