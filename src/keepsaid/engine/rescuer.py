"""The rescuer: what dead owners held goes back to the queue, at start and continuously."""

from __future__ import annotations

from dataclasses import dataclass

from keepsaid.domain.commits import ExpireLeases, VoidLeases
from keepsaid.domain.suspicion import TrialTerms
from keepsaid.ports.runtime import Clock, Ids
from keepsaid.ports.store import Operations

_NOTICES_MAX = 64


@dataclass(frozen=True, slots=True)
class CrashNotices:
    """What a person is told of a batch that crashes buried, did so again after its second chance, or that was parked.

    `{batch}` stands for its name, `{deaths}` for how often the program was stopped.
    """

    buried: str
    buried_again: str = ""
    parked: str = ""


class Rescuer:
    """Ends leases that nobody keeps."""

    def __init__(
        self,
        operations: Operations,
        clock: Clock,
        ids: Ids,
        owner: str,
        notices: CrashNotices,
        terms: TrialTerms | None = None,
    ) -> None:
        self._operations = operations
        self._clock = clock
        self._ids = ids
        self._owner = owner
        self._notices = notices
        self._terms = terms or TrialTerms()

    async def recover(self) -> tuple[int, ...]:
        """At start, under the instance lock: every lease of a former owner is void; returns dead batches."""
        reply_ids = tuple(self._ids.next() for _ in range(_NOTICES_MAX))
        told = self._notices
        return await self._operations.apply(
            VoidLeases(
                self._owner,
                self._clock.now_ms(),
                told.buried,
                reply_ids,
                self._terms,
                self._ids.next(),
                told.buried_again,
                told.parked,
            )
        )

    async def rescue(self) -> int:
        """Continuously: leases that ran out; returns how many."""
        return await self._operations.apply(ExpireLeases(self._clock.steady_ms()))
