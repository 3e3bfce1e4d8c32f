"""`keepsaid logs`: what the runtime wrote down, newest last."""

from __future__ import annotations

import json
import time
from collections import deque
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import typer

from keepsaid.interfaces.cli.logfile import EXTRAS
from keepsaid.interfaces.cli.output import envelope, say, show, visible
from keepsaid.interfaces.cli.session import session

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
    found = deque((line for line in _written(file) if _severity(line) >= least), maxlen=limit)
    if follow:
        for line in found:
            _print(line)
        for line in _coming(file):
            if _severity(line) >= least:
                _print(line)
        return
    show({"lines": list(found)}, *(_told(line) for line in found))
    if not found:
        say(f"nothing of that severity in {file}" if file.exists() else f"nothing was logged yet ({file})")


def _written(file: Path) -> Iterator[dict[str, Any]]:
    """Every line of the log, the rotated file before the current one."""
    for one in (file.with_name(f"{file.name}.1"), file):
        if one.exists():
            with one.open("rb") as log:
                yield from map(_parsed, log)


def _coming(file: Path) -> Iterator[dict[str, Any]]:
    """Lines as they are written, from now on; a rotated file is followed to the new one."""
    place, at = _identity(file), file.stat().st_size if file.exists() else 0
    while True:
        now = _identity(file)
        if now != place:
            place, at = now, 0
        if now is not None:
            with file.open("rb") as log:
                log.seek(at)
                for raw in log:
                    if not raw.endswith(b"\n"):
                        break
                    at += len(raw)
                    yield _parsed(raw)
        time.sleep(_POLL_S)


def _identity(file: Path) -> int | None:
    try:
        return file.stat().st_ino
    except FileNotFoundError:
        return None


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
