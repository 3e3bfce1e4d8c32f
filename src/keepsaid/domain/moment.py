"""Moments: a day or a time as programs write it, in milliseconds UTC."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

_EPOCH = datetime.fromtimestamp(0, UTC)
_DAY_CHARS = 10
_DAY_MS = 86_400_000


def moment(text: str, *, ends: bool = False) -> int:
    """A day (2026-05-04) or a time (2026-05-04T18:00, UTC unless it says otherwise) in milliseconds UTC.

    A day stands for its beginning, or for its end where it `ends` something. Raises ValueError for anything else.
    """
    given = text.strip()
    try:
        at = datetime.fromisoformat(given)
    except ValueError:
        raise ValueError("a day such as 2026-05-04 or a time such as 2026-05-04T18:00") from None
    begins = ((at if at.tzinfo else at.replace(tzinfo=UTC)) - _EPOCH) // timedelta(milliseconds=1)
    return begins + _DAY_MS - 1 if ends and len(given) <= _DAY_CHARS else begins
