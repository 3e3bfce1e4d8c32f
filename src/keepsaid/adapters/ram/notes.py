"""Notes: kept by name until they are over."""

from __future__ import annotations

from keepsaid.adapters.ram.state import State
from keepsaid.domain.note import Note


def keep(state: State, commit: Note) -> None:
    """Apply one commit."""
    for name in [name for name, (_, until) in state.notes.items() if until <= commit.at]:
        del state.notes[name]
    state.notes[commit.name] = commit.text, commit.until


class RamNotes:
    """Notes, read only."""

    _state: State

    async def note(self, name: str, at: int) -> str:
        """What was noted under a name; "" for nothing, and for what is over at that time (milliseconds UTC)."""
        text, until = self._state.notes.get(name, ("", at))
        return text if until > at else ""
