"""Pins of a home: which texts of tools its owner accepted, and which tools wait for that, in two files.

Each file has one writer, so that neither needs a lock: the command writes what was accepted, the runtime what waits.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

from keepsaid.config.durable import write_file
from keepsaid.domain.trust import Described, ToolStanding, standing_of
from keepsaid.errors import HomeError
from keepsaid.ports.model import Served

ACCEPTED_FILE, WAITING_FILE = "tools.json", "tools.json"
"""In the data directory of a home the accepted texts; in its state directory the tools that wait."""

Pins = Mapping[str, Mapping[str, Described]]


class ToolPins:
    """The accepted texts of a home (`accepted`) and the tools that wait for acceptance (`waiting`)."""

    def __init__(self, accepted: Path, waiting: Path) -> None:
        self._accepted, self._waiting = accepted, waiting
        self._seen: tuple[int, int] | None = None
        self._pins: Pins = {}
        self._told: dict[str, dict[str, list[str]]] | None = None

    def standing(self, server: str, one: Served) -> ToolStanding:
        """Whether the text of a tool was accepted. A file that cannot be read accepts nothing."""
        return standing_of(one.text, self.accepted(server, one.name))

    def accepted(self, server: str, name: str) -> Described | None:
        """The text that was accepted of a tool; None where none was."""
        return self._current().get(server, {}).get(name)

    def stamp(self) -> tuple[int, int]:
        try:
            found = self._accepted.stat()
        except OSError:
            return 0, 0
        return found.st_mtime_ns, found.st_ino

    def offered(self, server: str, served: Sequence[Served]) -> Sequence[Served]:
        """The tools that may be offered: allowed, and with the text that was accepted.

        Writes down which others wait.
        """
        allowed = [one for one in served if one.allowed]
        found = [(one, self.standing(server, one)) for one in allowed]
        self._tell(server, {one.name: [each, one.text.pin] for one, each in found if each is not ToolStanding.ACCEPTED})
        return [one for one, each in found if each is ToolStanding.ACCEPTED]

    def _tell(self, server: str, waiting: dict[str, list[str]]) -> None:
        told = self._told = _read_waiting(self._waiting) if self._told is None else self._told
        if told.get(server, {}) != waiting:
            told[server] = waiting
            with suppress(OSError):  # it is only shown; what is offered does not depend on it
                write_file(self._waiting, json.dumps({name: one for name, one in told.items() if one}))

    def accept(self, server: str, served: Sequence[Served]) -> None:
        """Accept the texts of tools as they are given. Raises HomeError."""
        pins = {name: dict(each) for name, each in self._current().items()}
        pins.setdefault(server, {}).update({one.name: one.text for one in served})
        told = {name: {tool: asdict(text) for tool, text in each.items()} for name, each in pins.items()}
        try:
            write_file(self._accepted, json.dumps(told, indent=1))
        except OSError as error:
            what = f"{self._accepted} cannot be written ({error.strerror})"
            raise HomeError(what, safe="Nothing was accepted.", hint="make its directory yours and writable") from error

    def waiting(self) -> dict[str, dict[str, ToolStanding]]:
        """By server, the tools that wait for acceptance, as the runtime saw them last."""
        found: dict[str, dict[str, ToolStanding]] = {}
        for server, each in _read_waiting(self._waiting).items():
            for name, (standing, pin) in each.items():
                text = self.accepted(server, name)
                if text is None or text.pin != pin:
                    found.setdefault(server, {})[name] = ToolStanding(standing)
        return found

    def _current(self) -> Pins:
        stamp = self.stamp()
        if stamp != self._seen:
            self._seen, self._pins = stamp, _read(self._accepted)
        return self._pins


def _read(file: Path) -> Pins:
    try:
        told: dict[str, dict[str, dict[str, Any]]] = json.loads(file.read_text("utf-8"))
        return {
            name: {tool: Described(str(one["description"]), dict(one["schema"])) for tool, one in each.items()}
            for name, each in told.items()
        }
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return {}


def _read_waiting(file: Path) -> dict[str, dict[str, list[str]]]:
    try:
        told: dict[str, dict[str, list[str]]] = json.loads(file.read_text("utf-8"))
        return {
            name: {tool: [ToolStanding(standing), str(pin)] for tool, (standing, pin) in each.items()}
            for name, each in told.items()
        }
    except (OSError, ValueError, TypeError, AttributeError):
        return {}
