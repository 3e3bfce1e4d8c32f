"""The writer thread: the only one that writes a file, many commits to one fsync."""

from __future__ import annotations

import asyncio
import logging
import threading
from copy import copy
from queue import Empty, SimpleQueue
from typing import Any, TypeVar

from keepsaid.adapters.sqlite.ledger import Ledger, Refused
from keepsaid.domain.commits import Commit
from keepsaid.errors import ForeignStore, StoreBroken, StoreError

R = TypeVar("R")
_log = logging.getLogger("keepsaid.store")
_GROUP_MAX = 512

Job = tuple[object, "asyncio.Future[Any]"]


class Writer:
    """Applies commits on its own thread; what waits while one group is written is the next group."""

    def __init__(self, ledger: Ledger, name: str) -> None:
        self._ledger = ledger
        self._queue: SimpleQueue[Job | None] = SimpleQueue()
        self._loop = asyncio.get_running_loop()
        self._broken: StoreBroken | None = None
        self._closed = False
        self._thread = threading.Thread(target=self._work, name=f"keepsaid-{name}", daemon=True)
        self._thread.start()

    async def apply(self, commit: Commit[R]) -> R:
        """Apply one commit; returns after it is on disk."""
        if self._broken is not None:
            raise copy(self._broken) from self._broken
        if self._closed:
            raise StoreBroken("the store is closed")
        future: asyncio.Future[R] = self._loop.create_future()
        self._queue.put((commit, future))
        return await future

    async def close(self) -> None:
        """Write what is queued, then stop the thread and close the file."""
        if not self._closed:
            self._closed = True
            self._queue.put(None)
            await asyncio.to_thread(self._thread.join)

    def _work(self) -> None:
        stop = False
        while not stop:
            group, stop = self._next_group()
            if group:
                results = self._apply([commit for commit, _ in group])
                self._note_damage(results)
                self._answer(group, results)
                if self._broken is None:
                    self._tidy()
        self._ledger.close(broken=self._broken is not None)

    def _apply(self, commits: list[object]) -> list[Any]:
        """Nothing after an error of the disk: a later sync would not prove that earlier pages were written."""
        if self._broken is not None:
            return [Refused(self._broken)] * len(commits)
        return self._ledger.apply(commits)

    def _next_group(self) -> tuple[list[Job], bool]:
        job = self._queue.get()
        group: list[Job] = []
        while job is not None:
            group.append(job)
            if len(group) == _GROUP_MAX:
                return group, False
            try:
                job = self._queue.get_nowait()
            except Empty:
                return group, False
        return group, True

    def _note_damage(self, results: list[Any]) -> None:
        for result in results:
            if isinstance(result, Refused) and isinstance(result.error, StoreBroken | ForeignStore):
                self._broken = _broken(result.error)

    def _answer(self, group: list[Job], results: list[Any]) -> None:
        def tell() -> None:
            for (_, future), result in zip(group, results, strict=True):
                if future.done():
                    continue
                if isinstance(result, Refused):
                    future.set_exception(result.error)
                else:
                    future.set_result(result)

        try:
            self._loop.call_soon_threadsafe(tell)
        except RuntimeError:
            self._closed = True  # the loop is gone, and with it everyone who could be told

    def _tidy(self) -> None:
        try:
            self._ledger.tidy()
        except (StoreBroken, ForeignStore) as error:
            self._broken = _broken(error)
        except StoreError:
            pass  # full or held by another program: it is tried again after the next group
        except Exception as error:  # noqa: BLE001  # guard: store writer - upkeep that fails must not stop commits
            _log.error("upkeep of a store failed", exc_info=error)


def _broken(error: StoreBroken | ForeignStore) -> StoreBroken:
    return copy(error) if isinstance(error, StoreBroken) else StoreBroken(error.what)
