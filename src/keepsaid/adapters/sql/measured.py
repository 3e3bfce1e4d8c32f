"""A writer whose commits are measured: how long each took, whether it was kept, and what of memory it changed."""

from __future__ import annotations

import time
from collections.abc import Mapping

from keepsaid.adapters.sql.query import T
from keepsaid.domain.commits import Commit
from keepsaid.errors import KeepsaidError
from keepsaid.ports.store_views import Operations
from keepsaid.ports.telemetry import NO_TELEMETRY, Doing


class MeasuredWriter:
    """Applies commits by another writer. `store` is the label of its durations.

    `spans` are the commits that get a span, each with the name of its field that holds the records, "" for one record.
    """

    def __init__(self, writer: Operations, store: str, spans: Mapping[type, tuple[Doing, str]]) -> None:
        self.telemetry = NO_TELEMETRY
        self._writer = writer
        self._labels = (store,)
        self._spans = spans

    async def apply(self, commit: Commit[T]) -> T:
        """Apply one commit; raises what the writer raises."""
        if self.telemetry is NO_TELEMETRY:
            return await self._writer.apply(commit)
        if (spanned := self._spans.get(type(commit))) is None:
            return await self._measured(commit)
        doing, records = spanned
        with self.telemetry.span(doing) as span:
            span.note("records", len(getattr(commit, records)) if records else 1)
            return await self._measured(commit)

    async def _measured(self, commit: Commit[T]) -> T:
        began, telemetry = time.perf_counter(), self.telemetry
        try:
            result = await self._writer.apply(commit)
        except KeepsaidError:
            self._count("refused")
            raise
        telemetry.observe("keepsaid_commit_seconds", time.perf_counter() - began, self._labels)
        self._count("kept")
        return result

    def _count(self, result: str) -> None:
        if self._labels == ("memory",):
            self.telemetry.add("keepsaid_memory_writes_total", (result,))
