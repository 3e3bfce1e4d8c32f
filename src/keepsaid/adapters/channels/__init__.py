"""Channels: how messages come in from outside and replies go out."""
