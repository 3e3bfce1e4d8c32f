"""The operational store: every read, and the one way to write."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

from keepsaid.adapters.sql.measured import MeasuredWriter
from keepsaid.adapters.sql.operations.queries import SqlLanes
from keepsaid.adapters.sql.query import SqlReaders, T
from keepsaid.adapters.sql.tombstones import TombstoneKeyring
from keepsaid.domain import commits, event, fetching, making, process, session, task
from keepsaid.errors import StoreError
from keepsaid.ports.store_views import Operations
from keepsaid.ports.telemetry import Telemetry

_QUIET = frozenset[type]((
    commits.BeginPruning, commits.EpisodesKept, commits.Prune, commits.Renew, commits.StepEnd, commits.StepStart,
    commits.TakeReplies, event.Distribute, event.SettleDeliveries, event.Subscribe, event.TakeDeliveries,
    fetching.KeepBrought, fetching.KeepPiece, fetching.PutOffFile, fetching.TakeAwaited, fetching.TakeFiles,
    process.Beat, process.Note, session.ClaimCollection, task.RenewTask, task.ResultsKept, task.TellStatus,
    making.KeepTurnFile, making.KeepTurnPiece,
))  # fmt: skip
"""Types of commits that never write events."""


class ReadOnly:
    """Refuses every commit; `place` is what was opened for reading."""

    def __init__(self, place: str) -> None:
        self._place = place

    async def apply(self, commit: commits.Commit[T]) -> T:
        raise StoreError(f"{type(commit).__name__} needs the runtime: {self._place} was opened for reading only")


class SqlOperations(SqlLanes):
    """An operational store in any database; `closing` closes what was opened for it, in order."""

    def __init__(
        self,
        writer: Operations,
        readers: SqlReaders,
        keyring: TombstoneKeyring,
        closing: Sequence[Callable[[], Awaitable[None]]] = (),
    ) -> None:
        super().__init__(readers, keyring)
        self._writer, self._closing = MeasuredWriter(writer, "operations", {}), closing

    async def apply(self, commit: commits.Commit[T]) -> T:
        """Apply one commit; returns after it is on disk. Raises a StoreError with nothing of it kept."""
        result = await self._writer.apply(commit)
        if type(commit) not in _QUIET:
            self._committed.set()
        return result

    def measure(self, telemetry: Telemetry) -> None:
        """Measure every commit from now on."""
        self._writer.telemetry = telemetry

    async def close(self) -> None:
        """Stop the threads and close the database."""
        for close in self._closing:
            await close()
