"""`keepsaid logs`: what the runtime wrote down, newest last."""

from __future__ import annotations

import json
import os
import time
from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import closing
from itertools import chain
from pathlib import Path
from typing import Annotated, Any, BinaryIO, NoReturn

import typer

from keepsaid.interfaces.cli.escapes import visible
from keepsaid.interfaces.cli.logfile import EXTRAS
from keepsaid.interfaces.cli.output import envelope, show
from keepsaid.interfaces.cli.session import say, session

_LEVELS = ("debug", "info", "warning", "error", "critical")
_POLL_S = 0.2


def logs(
    limit: Annotated[int, typer.Option("-n", "--limit", min=0, help="How many lines.")] = 50,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Go on until stopped.")] = False,
    level: Annotated[str, typer.Option(help=f"Least severity: {', '.join(_LEVELS)}.")] = "debug",
) -> None:
    """Show the log of the runtime.

    It holds no message text unless log.text is set.
    """
    if level not in _LEVELS:
        raise typer.BadParameter(f"{level!r} is none of: {', '.join(_LEVELS)}", param_hint="--level")
    file, least = session().home.log_file, _LEVELS.index(level)
    with closing(Tail(file)) as tail:
        lines = chain(_rotated(file), tail.more())
        found = deque((line for line in lines if _severity(line) >= least), maxlen=limit)
        if follow:
            _follow(found, tail, least)
    show({"lines": list(found)}, *(_told(line) for line in found))
    if limit and not found:
        say(f"nothing of that severity in {file}" if file.exists() else f"nothing was logged yet ({file})")


def _follow(found: Iterable[dict[str, Any]], tail: Tail, least: int) -> NoReturn:
    while True:
        for line in found:
            if _severity(line) >= least:
                _print(line)
        time.sleep(_POLL_S)
        found = tail.more()


def _rotated(file: Path) -> Iterator[dict[str, Any]]:
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
    try:
        line = json.loads(text)
    except ValueError:
        line = None
    return line if isinstance(line, dict) else {"level": "info", "msg": text}


def _severity(line: dict[str, Any]) -> int:
    return _LEVELS.index(line["level"]) if line.get("level") in _LEVELS else 0


def _told(line: dict[str, Any]) -> str:
    extras = "  ".join(f"{name}={line[name]}" for name in (*EXTRAS, "error") if name in line)
    parts = (line.get("ts", "-"), str(line.get("level", "-")).ljust(8), line.get("logger", "-"), line.get("msg", ""))
    trace = [f"\n    {frame}" for frame in line.get("trace") or []]
    return "  ".join((*map(str, parts), *([extras] if extras else []))) + "".join(trace)


def _print(line: dict[str, Any]) -> None:
    print(envelope(line) if session().json else visible(_told(line)), flush=True)
