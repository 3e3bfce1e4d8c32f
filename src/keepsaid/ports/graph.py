"""The graph of memory, as those need it who write it and who walk it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from keepsaid.domain.graph import Association, Mention, Seed
from keepsaid.domain.memory import Found, Listener


class Graph(Protocol):
    """What memories have to do with one another, and whom and what they mention."""

    async def relate(self, associations: Sequence[Association], mentions: Sequence[Mention], at: int) -> int:
        """Write both, all or nothing; what is there already takes the new weight. Returns how many are there now.

        One whose memory is gone or forgotten is not written, nor one from a memory to itself.
        """
        ...

    async def walk(self, listener: Listener, query: str, seeds: Sequence[Seed], limit: int) -> tuple[Found, ...]:
        """The memories reached from the seeds, and from what the query names, in at most two steps, best first.

        Nothing is reached that the listener may not hear, nor over it.
        """
        ...
