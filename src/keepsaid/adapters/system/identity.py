"""Identity files: the owner's words about the agent, read again when they change."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path

from keepsaid.text.normal import normalise

_log = logging.getLogger("keepsaid.identity")
_NAMES = ("SOUL.md", "IDENTITY.md", "USER.md")
_BYTES_MAX = 4_000_000
Stamp = tuple[tuple[int, int, int] | None, ...]


class IdentityFiles:
    """SOUL.md, IDENTITY.md and USER.md of one agent."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._stamp: Stamp = (None,) * len(_NAMES)
        self._text = ""

    async def read(self) -> str:
        """The files as they stand now, joined; one that cannot be read is left out, and logged."""
        stamp = self._look()
        if stamp != self._stamp:
            self._text = await asyncio.to_thread(self._load)
            self._stamp = stamp
        return self._text

    def _look(self) -> Stamp:
        """Taken before the files are read: what is written meanwhile is found by the next turn."""
        return tuple(self._stat(name) for name in _NAMES)

    def _stat(self, name: str) -> tuple[int, int, int] | None:
        try:
            found = (self._folder / name).stat()
        except OSError:
            return None
        return found.st_mtime_ns, found.st_size, found.st_ino

    def _load(self) -> str:
        parts = []
        for name in _NAMES:
            text = self._read(name)
            if text:
                parts.append(f"# {name}\n{text}")
        return "\n\n".join(parts)

    def _read(self, name: str) -> str:
        try:
            with (self._folder / name).open("rb") as opened:
                raw = opened.read(_BYTES_MAX)
        except FileNotFoundError:
            return ""
        except OSError as error:
            _log.warning("%s cannot be read (%s): it is left out of every prompt", name, error.strerror)
            return ""
        return normalise(raw.decode("utf-8-sig", "replace")).strip()
