"""Identifiers and times as text: 63-bit numbers that sort by time, with a prefix for their kind; ISO 8601 moments."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

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
    letters = (_ALPHABET[number >> 5 * place & 31] for place in reversed(range(_LENGTH)))
    return f"{PREFIXES[kind]}_{''.join(letters)}"


def read(kind: str, text: str) -> int | None:
    """Read an id of a `kind`, with or without its prefix; None when the text is no such id."""
    prefix, _, rest = text.strip().lower().rpartition("_")
    if prefix not in ("", PREFIXES[kind]) or len(rest) != _LENGTH or not _VALUE.keys() >= set(rest):
        return None
    number = 0
    for letter in rest:
        number = number * 32 + _VALUE[letter]
    return number if number <= MAX_ID else None


_EPOCH = datetime.fromtimestamp(0, UTC)
_DAY_CHARS = 10
_DAY_MS = 86_400_000


def moment(text: str, *, ends: bool = False) -> int:
    """A day (2026-05-04) or a time (2026-05-04T18:00, UTC unless it says otherwise) in milliseconds UTC.

    A day means its beginning, or its end where it `ends` something. Raises ValueError for anything else.
    """
    given = text.strip()
    try:
        at = datetime.fromisoformat(given)
    except ValueError:
        raise ValueError("a day such as 2026-05-04 or a time such as 2026-05-04T18:00") from None
    begins = ((at if at.tzinfo else at.replace(tzinfo=UTC)) - _EPOCH) // timedelta(milliseconds=1)
    return begins + _DAY_MS - 1 if ends and len(given) <= _DAY_CHARS else begins


_EARLIEST_MS, _LATEST_MS = -62_135_596_800_000, 253_402_300_799_999
"""The first and the last millisecond of the calendar: years 1 to 9999."""


def is_time(ms: int) -> bool:
    """Whether a number of milliseconds UTC is a time that a date can be written for."""
    return _EARLIEST_MS <= ms <= _LATEST_MS


def when(ms: int | None) -> str | None:
    """A time as RFC 3339, UTC, milliseconds; None for none, and for what no calendar holds."""
    if ms is None or not is_time(ms):
        return None
    return datetime.fromtimestamp(ms / 1000, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
