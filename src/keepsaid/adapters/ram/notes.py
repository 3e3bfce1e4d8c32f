"""Notes: kept by name until they are over."""

from __future__ import annotations

from keepsaid.adapters.ram.outbox import keep_for_owner
from keepsaid.adapters.ram.state import State
from keepsaid.domain.process import Note, NotifyOwner


def keep(state: State, commit: Note) -> None:
    """Apply one commit."""
    for name in [name for name, (_, until) in state.notes.items() if until <= commit.at]:
        del state.notes[name]
    state.notes[commit.name] = commit.text, commit.until


def notify(state: State, commit: NotifyOwner) -> bool:
    """Tell the owner, unless he was told."""
    _, until = state.notes.get(commit.name, ("", commit.at))
    if until > commit.at:
        return True
    if not keep_for_owner(state, commit.notice, commit.at):
        return False
    keep(state, Note(commit.name, "told", commit.until, commit.at))
    return True


class RamNotes:
    """Notes, read only."""

    _state: State

    async def note(self, name: str, at: int) -> str:
        """What was noted under a name; "" for nothing, and for what is over at that time (milliseconds UTC)."""
        text, until = self._state.notes.get(name, ("", at))
        return text if until > at else ""
