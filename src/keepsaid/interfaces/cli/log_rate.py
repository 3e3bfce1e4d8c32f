"""Log rate limit: a line that repeats is written so often a minute; then one line says how often it came."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import dataclass

PER_MINUTE = 60
"""Records with the same logger, level, code and template that are written within a minute."""

_MINUTE_S = 60.0
_KEYS_MAX = 500
_TEMPLATE_CHARS = 200

Key = tuple[str, int, str, str]


@dataclass(slots=True)
class _Window:
    """A minute of records of one kind."""

    began: float
    last: logging.LogRecord
    written: int = 0
    dropped: int = 0


class LogRate:
    """Decides which records are written; times are those of the records."""

    def __init__(self, per_minute: int = PER_MINUTE) -> None:
        self._per_minute = per_minute
        self._windows: dict[Key, _Window] = {}

    def take(self, record: logging.LogRecord) -> Iterator[logging.LogRecord]:
        """The records to write now: what was dropped in minutes that are over, then this one if it may be."""
        over = [key for key, one in self._windows.items() if not 0 <= record.created - one.began < _MINUTE_S]
        for key in over:
            yield from _summary(self._windows.pop(key))
        key = (record.name, record.levelno, str(getattr(record, "code", "")), str(record.msg)[:_TEMPLATE_CHARS])
        if key not in self._windows and len(self._windows) >= _KEYS_MAX:
            yield from _summary(self._windows.pop(next(iter(self._windows))))
        window = self._windows.setdefault(key, _Window(record.created, record))
        window.last = record
        if window.written < self._per_minute:
            window.written += 1
            yield record
        else:
            window.dropped += 1

    def rest(self) -> Iterator[logging.LogRecord]:
        """What was dropped and not told yet."""
        for window in self._windows.values():
            yield from _summary(window)
        self._windows.clear()


def _summary(window: _Window) -> Iterator[logging.LogRecord]:
    if window.dropped:
        last = window.last
        told = logging.makeLogRecord({**last.__dict__, "exc_info": None, "args": ()})
        told.msg = f"{last.getMessage()} (repeated {window.dropped:,} times more within a minute)"
        yield told
