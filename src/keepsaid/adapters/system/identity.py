"""Identity files: the owner's words about the agent, read again when they change."""

from __future__ import annotations

import asyncio
from pathlib import Path

_NAMES = ("SOUL.md", "IDENTITY.md", "USER.md")
Stamp = tuple[tuple[int, int] | None, ...]


class IdentityFiles:
    """SOUL.md, IDENTITY.md and USER.md of one agent."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._stamp: Stamp = (None,) * len(_NAMES)
        self._text = ""

    async def read(self) -> str:
        """The files as they stand now, joined; one that cannot be read is left out."""
        stamp = tuple(self._stat(name) for name in _NAMES)
        if stamp != self._stamp:
            self._text = await asyncio.to_thread(self._load)
            self._stamp = stamp
        return self._text

    def _stat(self, name: str) -> tuple[int, int] | None:
        try:
            found = (self._folder / name).stat()
        except OSError:
            return None
        return found.st_mtime_ns, found.st_size

    def _load(self) -> str:
        parts = []
        for name in _NAMES:
            try:
                text = (self._folder / name).read_text("utf-8", "replace").strip()
            except OSError:
                continue
            if text:
                parts.append(f"# {name}\n{text}")
        return "\n\n".join(parts)
