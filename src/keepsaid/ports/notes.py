"""Notes, as those need them who write them and read them again after a restart."""

from __future__ import annotations

from typing import Protocol

from keepsaid.ports.operations import Operations


class NoteView(Protocol):
    """Reads notes."""

    async def note(self, name: str, at: int) -> str:
        """What was noted under a name; "" for nothing, and for what is over at that time (milliseconds UTC)."""
        ...


class Notes(Operations, NoteView, Protocol):
    """Writes and reads them."""
