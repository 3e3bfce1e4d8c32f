"""The buffer, as its readers need it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from keepsaid.domain.batch import Due, Group
from keepsaid.domain.lane import Lane
from keepsaid.domain.views import EpisodeWork, MessageFilter, Overview, Story


class BufferView(Protocol):
    """Reads messages and what became of them."""

    async def due(self, at: int, limit: int) -> tuple[Due, ...]:
        """Lanes whose window has closed by `at`, best priority first."""
        ...

    async def waiting(self, lanes: Sequence[Lane]) -> tuple[Group, ...]:
        """The messages that wait in these lanes, the first hundred of each; a lane where none waits is left out."""
        ...

    async def next_due(self) -> int | None:
        """When the next window closes; None when nothing waits."""
        ...

    async def story(self, message_id: int) -> Story | None:
        """One message and what became of it."""
        ...

    async def find(self, wanted: MessageFilter) -> Sequence[Story]:
        """Messages, newest first."""
        ...

    async def overview(self) -> Overview:
        """Counts for `status`."""
        ...

    async def episode_work(self, limit: int, conversation: str | None = None) -> Sequence[EpisodeWork]:
        """Batches whose episodes are not known to be in memory, oldest first."""
        ...
