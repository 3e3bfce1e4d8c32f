"""Identifiers: 63-bit numbers that sort by time, written as text with a prefix for people."""

from __future__ import annotations

_ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"
_VALUE = {letter: value for value, letter in enumerate(_ALPHABET)}
_LENGTH = 13
MAX_ID = (1 << 63) - 1

PREFIXES = {
    "message": "msg",
    "batch": "bat",
    "turn": "trn",
    "reply": "rep",
    "task": "tsk",
    "memory": "mem",
    "session": "ses",
    "person": "per",
    "forgetting": "fgt",
    "delivery": "dlv",
    "schedule": "sch",
}


def show(kind: str, number: int) -> str:
    """Write the id of a `kind` (a key of PREFIXES) for people: `msg_01k2...`, 13 base-32 letters."""
    letters = []
    for _ in range(_LENGTH):
        number, digit = divmod(number, 32)
        letters.append(_ALPHABET[digit])
    return f"{PREFIXES[kind]}_{''.join(reversed(letters))}"


def read(kind: str, text: str) -> int | None:
    """Read an id of a `kind`, with or without its prefix; None when the text is no such id."""
    prefix, _, rest = text.strip().lower().rpartition("_")
    if prefix not in ("", PREFIXES[kind]) or len(rest) != _LENGTH:
        return None
    number = 0
    for letter in rest:
        if letter not in _VALUE:
            return None
        number = number * 32 + _VALUE[letter]
    return number if number <= MAX_ID else None
