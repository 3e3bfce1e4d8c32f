"""The zip of `keepsaid doctor --bundle`: what helps to find a fault, without message text and secrets."""

from __future__ import annotations

import json
import os
import platform
from collections import deque
from collections.abc import Callable
from contextlib import closing
from itertools import chain
from pathlib import Path
from typing import Any
from zipfile import ZIP_DEFLATED, ZipFile

from keepsaid.errors import HomeError, KeepsaidError
from keepsaid.interfaces.cli.console import say, session
from keepsaid.interfaces.cli.logs import EXTRAS, Tail, rotated
from keepsaid.interfaces.cli.settings import settings

_LINES_MAX = 1_000
_KEPT = ("ts", "level", "logger", "msg", "error", "trace", *EXTRAS)
"""What is taken of a line of the log. Its messages never hold text that people wrote, unless `log.text` is set."""


def write_report(file: Path, findings: dict[str, Any]) -> None:
    """Write the bundle, for its owner alone. Raises HomeError if the file cannot be written or is there already."""
    parts: dict[str, Callable[[], Any]] = {
        "doctor.json": lambda: findings,
        "versions.json": _versions,
        "settings.json": lambda: [one.shape for one in settings() if one.origin != "default"],
        "status.json": _status,
        "log.json": _log,
    }
    try:
        descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "wb") as out, ZipFile(out, "w", ZIP_DEFLATED) as bundle:
            for name, read in parts.items():
                bundle.writestr(name, _without_places(json.dumps(_read(read), indent=1, ensure_ascii=False)))
    except OSError as error:
        hint = "keepsaid doctor --bundle another.zip"
        raise HomeError(
            f"{file} cannot be written ({error.strerror})", safe="Nothing was changed.", hint=hint
        ) from error
    say(f"wrote {file}: findings, versions, settings, counts and log lines; look at it before you send it")


def _read(part: Callable[[], Any]) -> Any:
    """One part of the bundle; what cannot be read is part of the report."""
    try:
        return part()
    except KeepsaidError as error:
        return {"error": error.as_json()}


def _versions() -> dict[str, str]:
    from importlib.metadata import distributions  # noqa: PLC0415 - reads every distribution that is installed

    installed = {str(one.metadata["Name"]): one.version for one in distributions()}
    return {"python": platform.python_version(), "platform": platform.platform(), **dict(sorted(installed.items()))}


def _status() -> Any:
    from keepsaid.interfaces.status_shape import status_shape  # noqa: PLC0415

    found = session().read(lambda stores: stores.status.read())
    return None if found is None else status_shape(found)


def _log() -> list[dict[str, Any]]:
    if session().config().log.text:
        return [{"msg": "left out: log.text is set, so the log holds message text"}]
    file = session().home.log_file
    with closing(Tail(file)) as tail:
        lines = deque(chain(rotated(file), tail.more()), maxlen=_LINES_MAX)
    return [{name: line[name] for name in _KEPT if name in line} for line in lines]


def _without_places(text: str) -> str:
    """The text with the home of this user, and of keepsaid, as `~` and `HOME`."""
    return text.replace(str(session().home.data.parent), "HOME").replace(str(Path.home()), "~")
