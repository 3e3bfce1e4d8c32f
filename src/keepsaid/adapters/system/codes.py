"""Codes: short words that nobody guesses, for a person to read in one chat and write in another."""

from __future__ import annotations

import secrets

_ALPHABET = "ABCDEFGHJKLMNPQRSTUVWXYZ23456789"
LENGTH = 8


def one_time_code() -> str:
    """A new code: 40 bits, in letters that are not mistaken for one another."""
    return "".join(secrets.choice(_ALPHABET) for _ in range(LENGTH))
