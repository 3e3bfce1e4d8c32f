"""The log file: one JSON object a line, rotated, readable by its owner alone, without anybody's words."""

from __future__ import annotations

import logging
import os
import traceback
from datetime import UTC, datetime
from io import TextIOWrapper
from logging.handlers import RotatingFileHandler
from pathlib import Path

from keepsaid.app.redaction import plain_redactor
from keepsaid.domain.ids import PREFIXES, show
from keepsaid.interfaces.cli.escapes import json_line
from keepsaid.interfaces.cli.log_rate import LogRate
from keepsaid.ports.redactor import Redactor

EXTRAS = ("code", "turn", "batch", "message", "reply", "channel", "how", "took_ms", "held_s")
"""Fields a record may carry; anything else is left out."""

_BYTES_MAX = 5_000_000
_FILES = 5
_FRAMES_MAX = 20


class JsonLines(logging.Formatter):
    """A record as one JSON object, without secrets.

    The text of an exception may quote a message, so only `text` lets it in.
    """

    def __init__(self, redactor: Redactor, *, text: bool = False) -> None:
        super().__init__()
        self._redactor = redactor
        self._text = text

    def format(self, record: logging.LogRecord) -> str:
        """The line."""
        at = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        line: dict[str, object] = {
            "ts": at,
            "level": record.levelname.lower(),
            "logger": record.name,
            "msg": self._redactor.redacted(record.getMessage()),
        }
        line |= {name: self._extra(name, getattr(record, name)) for name in EXTRAS if hasattr(record, name)}
        if isinstance(stack := getattr(record, "stack", None), list):
            line["trace"] = stack
        if record.exc_info and record.exc_info[1] is not None:
            line |= self._exception(record.exc_info[1])
        return json_line(line, str)

    def _extra(self, name: str, value: object) -> object:
        told = _named(name, value)
        return self._redactor.redacted(told) if isinstance(told, str) else told

    def _exception(self, error: BaseException) -> dict[str, object]:
        frames = traceback.extract_tb(error.__traceback__)[-_FRAMES_MAX:]
        told: dict[str, object] = {
            "error": type(error).__name__,
            "trace": [f"{frame.filename}:{frame.lineno} in {frame.name}" for frame in frames],
        }
        return {**told, "detail": self._redactor.redacted(str(error))} if self._text else told


def _named(kind: str, value: object) -> object:
    """An id as `keepsaid why` and `keepsaid inbox show` take it; anything else as it is."""
    return show(kind, value) if kind in PREFIXES and isinstance(value, int) else value


class _OwnersFile(RotatingFileHandler):
    """Rotates, makes every file with mode 0600, and writes what repeats at a limited rate."""

    _rate: LogRate | None = None

    def emit(self, record: logging.LogRecord) -> None:
        """Write a record, unless it repeats too often."""
        self._rate = self._rate or LogRate()
        for one in self._rate.take(record):
            super().emit(one)

    def close(self) -> None:
        """Write what is left to be told, and close the file."""
        for one in self._rate.rest() if self._rate else ():
            super().emit(one)
        self._rate = None
        super().close()

    def _open(self) -> TextIOWrapper:
        return _private(Path(self.baseFilename))


def _private(file: Path) -> TextIOWrapper:
    descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
    return open(descriptor, "a", encoding="utf-8", errors="replace")  # noqa: PTH123 - a descriptor has no path


def keep_log(file: Path, level: str, redactor: Redactor, *, text: bool) -> None:
    """Write this process's log to `file`: ours from `level` on, other libraries' warnings."""
    log = _OwnersFile(file, maxBytes=_BYTES_MAX, backupCount=_FILES - 1, encoding="utf-8")
    log.setFormatter(JsonLines(redactor, text=text))
    logging.getLogger().addHandler(log)
    logging.getLogger("keepsaid").setLevel(level.upper())


def append(file: Path, record: logging.LogRecord) -> None:
    """Write one record beside a runtime that may be writing too; raises OSError."""
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with _private(file) as log:
        log.write(JsonLines(plain_redactor()).format(record) + "\n")
