"""`keepsaid data logs`, and the log file: one JSON object a line, rotated, readable by its owner alone."""

from __future__ import annotations

import json
import logging
import os
import time
import traceback
from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import closing, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from io import TextIOWrapper
from itertools import chain
from logging.handlers import RotatingFileHandler
from pathlib import Path
from typing import Annotated, Any, BinaryIO, NoReturn

import typer

from keepsaid.app.redaction import plain_redactor
from keepsaid.domain import ids
from keepsaid.interfaces.cli.console import check_choice, say, session, show
from keepsaid.interfaces.cli.escapes import json_line
from keepsaid.ports.runtime import Redactor
from keepsaid.ports.telemetry import TRACE_ID

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
        line: dict[str, object] = {"ts": at, "level": record.levelname.lower(), "logger": record.name}
        line["msg"] = self._redactor.redacted(record.getMessage())
        line |= {name: self._extra(name, getattr(record, name)) for name in EXTRAS if hasattr(record, name)}
        if trace_id := TRACE_ID.get():
            line["trace_id"] = trace_id
        if isinstance(stack := getattr(record, "stack", None), list):
            line["trace"] = stack
        if record.exc_info and record.exc_info[1] is not None:
            line |= self._exception(record.exc_info[1])
        return json_line(line, str)

    def _extra(self, name: str, value: object) -> object:
        """A field of a record; an id as `keepsaid why` and `keepsaid inbox show` take it."""
        told = ids.show(name, value) if name in ids.PREFIXES and isinstance(value, int) else value
        return self._redactor.redacted(told) if isinstance(told, str) else told

    def _exception(self, error: BaseException) -> dict[str, object]:
        frames = traceback.extract_tb(error.__traceback__)[-_FRAMES_MAX:]
        trace = [f"{frame.filename}:{frame.lineno} in {frame.name}" for frame in frames]
        told: dict[str, object] = {"error": type(error).__name__, "trace": trace}
        return {**told, "detail": self._redactor.redacted(str(error))} if self._text else told


class _OwnersFile(RotatingFileHandler):
    """Rotates, makes every file with mode 0600, and writes what repeats at a limited rate."""

    _rate: LogRate | None = None

    def emit(self, record: logging.LogRecord) -> None:
        """Write a record, unless it repeats too often."""
        self._rate = self._rate or LogRate()
        for one in self._rate.take(record):
            super().emit(one)

    def close(self) -> None:
        """Write the pending counts of repeated lines, and close the file."""
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


_LEVELS = ("debug", "info", "warning", "error", "critical")
_POLL_S = 0.2


def logs(
    limit: Annotated[int, typer.Option("-n", "--limit", min=0, help="How many lines.")] = 50,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Keep printing until stopped.")] = False,
    level: Annotated[str, typer.Option(help=f"Lowest level: {', '.join(_LEVELS)}.")] = "debug",
) -> None:
    """Show the log of the runtime.

    It holds no message text unless log.text is set.
    """
    check_choice("--level", level, _LEVELS)
    file, least = session().home.log_file, _LEVELS.index(level)
    with closing(Tail(file)) as tail:
        lines = chain(rotated(file), tail.more())
        found = deque((line for line in lines if _severity(line) >= least), maxlen=limit)
        if follow:
            _follow(found, tail, least)
    show({"lines": list(found)}, *(_render_line(line) for line in found))
    if limit and not found:
        say(f"nothing of that severity in {file}" if file.exists() else f"nothing was logged yet ({file})")


def _follow(found: Iterable[dict[str, Any]], tail: Tail, least: int) -> NoReturn:
    while True:
        for line in found:
            if _severity(line) >= least:
                show(line, _render_line(line))
        time.sleep(_POLL_S)
        found = tail.more()


def rotated(file: Path) -> Iterator[dict[str, Any]]:
    """Every line of the file that was the log before."""
    before = file.with_name(f"{file.name}.1")
    if before.exists():
        with before.open("rb") as log:
            yield from map(_parsed, log)


class Tail:
    """A log that is read on and on: a rotated one to its end, then the new one. No line is left out."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._log: BinaryIO | None = None

    def more(self) -> Iterator[dict[str, Any]]:
        """Every whole line since the last call."""
        if self._log is not None:
            moved = self._moved()
            yield from self._read(self._log)
            if not moved:
                return
            self.close()
        try:
            self._log = self._file.open("rb")
        except FileNotFoundError:
            return
        yield from self._read(self._log)

    def close(self) -> None:
        """Close the log."""
        if self._log is not None:
            self._log.close()
            self._log = None

    def _moved(self) -> bool:
        assert self._log is not None, "a log that was never opened has no place"
        try:
            return not os.path.samestat(self._file.stat(), os.fstat(self._log.fileno()))
        except FileNotFoundError:
            return True

    @staticmethod
    def _read(log: BinaryIO) -> Iterator[dict[str, Any]]:
        for raw in iter(log.readline, b""):
            if not raw.endswith(b"\n"):
                log.seek(-len(raw), os.SEEK_CUR)
                return
            yield _parsed(raw)


def _parsed(raw: bytes) -> dict[str, Any]:
    text = raw.decode("utf-8", "replace").rstrip("\n")
    with suppress(ValueError):
        line = json.loads(text)
        if isinstance(line, dict):
            return line
    return {"level": "info", "msg": text}


def _severity(line: dict[str, Any]) -> int:
    return _LEVELS.index(line["level"]) if line.get("level") in _LEVELS else 0


def _render_line(line: dict[str, Any]) -> str:
    extras = "  ".join(f"{name}={line[name]}" for name in (*EXTRAS, "error") if name in line)
    parts = (line.get("ts", "-"), str(line.get("level", "-")).ljust(8), line.get("logger", "-"), line.get("msg", ""))
    trace = [f"\n    {frame}" for frame in line.get("trace") or []]
    return "  ".join((*map(str, parts), *([extras] if extras else []))) + "".join(trace)
