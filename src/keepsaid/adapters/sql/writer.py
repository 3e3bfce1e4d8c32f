"""The writer: one thread applies groups of commits, a transaction each, whatever database holds them."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Sequence
from copy import copy
from functools import partial
from itertools import groupby
from queue import Empty, SimpleQueue
from typing import Any, Protocol

from keepsaid.adapters.sql.query import CommitTable, SqlSession, T, log
from keepsaid.domain.commits import Commit
from keepsaid.errors import ForeignStore, StoreBroken, StoreError
from keepsaid.values import frozen


@frozen
class RejectedCommit:
    """A commit that was not kept, and why."""

    error: Exception


SAVEPOINT, RELEASE = "SAVEPOINT one", "RELEASE one"
"""What a commit of several is undone to, and what ends that."""


class CommitGroup:
    """Applies commits in the open transaction of a group, so that one that fails is undone alone.

    `translate` returns the error that such a commit is refused with; None if nothing of the group may be kept. With
    `begins_saved`, the transaction of several has a savepoint already.
    """

    def __init__(
        self,
        db: SqlSession,
        table: CommitTable,
        translate: Callable[[Exception], Exception | None],
        *,
        begins_saved: bool = False,
    ) -> None:
        self._db, self._table, self._translate, self._begins_saved = db, table, translate, begins_saved
        self._left, self._checks_last = 0, True

    def apply(self, commits: Sequence[object], *, checks_last: bool = True) -> list[Any]:
        """Apply commits in order; each result stands at its place, a RejectedCommit where one was refused.

        Unless `checks_last`, what the last one posted may be run with the end of the transaction, and be refused there.
        """
        self._left = len(commits) if len(commits) > 1 else 0
        self._checks_last = checks_last
        if self._left and not self._begins_saved:
            self._db.execute(SAVEPOINT)
        results: list[Any] = []
        for kind, run in groupby(commits, key=type):
            results += self._run(kind, list(run))
        return results

    def _run(self, kind: type, commits: list[object]) -> list[Any]:
        if (apply_set := self._table.sets.get(kind)) is not None:
            results = self._guarded(lambda: apply_set(self._db, commits), len(commits))
            if not isinstance(results, RejectedCommit):
                return list(results)
            if len(commits) == 1:
                return [results]
            return [result for commit in commits for result in self._run(kind, [commit])]
        apply_one = self._table.single[kind]
        return [self._guarded(partial(apply_one, self._db, commit), 1) for commit in commits]

    def _guarded(self, action: Callable[[], Any], count: int) -> Any:
        """Run some commits in a savepoint, then begin the next one; a commit that is alone needs none."""
        if not self._left:
            return action()
        try:
            result = action()
            if count < self._left:
                self._db.flush(then=(RELEASE, SAVEPOINT))
            elif self._checks_last:
                self._db.flush()
        except Exception as error:  # guard: store writer - one bad commit must not undo the group
            if (refused := self._translate(error)) is None:
                raise
            self._db.flush(back_to="one")
            self.notify_undone()
            self._left -= count == 1
            return RejectedCommit(refused)
        self._left -= count
        return result

    def notify_undone(self) -> None:
        """Let those that remember rows forget them: some were rolled back."""
        for undone in self._table.undone:
            undone()


class GroupExecutor(Protocol):
    """Writes groups of commits to a database; used by one thread.

    The upkeep is done once no commit has come for `quiet_s` seconds, or when it is half a second late; with 0, after
    each group.
    """

    quiet_s: float

    def apply(self, commits: Sequence[object]) -> list[Any]:
        """Apply the commits in one transaction; a result for each, RejectedCommit where one was not kept."""

    def tidy(self) -> bool:
        """Do some upkeep that is due between two groups; returns whether more may be due."""

    def close(self, *, broken: bool = False) -> None:
        """Close the database; after an error of its disk, write nothing more."""


_GROUP_MAX, _BUSY_S = 512, 0.5
"""Commits in a group; how long the upkeep waits for a quiet moment."""

Job = tuple[object, "asyncio.Future[Any]"]


class Writer:
    """Applies commits on its own thread; what waits while one group is written is the next group."""

    def __init__(self, ledger: GroupExecutor, name: str) -> None:
        self._ledger = ledger
        self._queue: SimpleQueue[Job | None] = SimpleQueue()
        self._loop = asyncio.get_running_loop()
        self._broken: StoreBroken | None = None
        self._closed = False
        self._untidy_since: float | None = None
        self._thread = threading.Thread(target=self._work, name=f"keepsaid-{name}", daemon=True)
        self._thread.start()

    async def apply(self, commit: Commit[T]) -> T:
        """Apply one commit; returns after it is on disk."""
        if self._broken is not None:
            raise copy(self._broken) from self._broken
        if self._closed:
            raise StoreBroken("the store is closed")
        future: asyncio.Future[T] = self._loop.create_future()
        self._queue.put((commit, future))
        return await future

    @property
    def is_closed(self) -> bool:
        """Whether nothing more is taken."""
        return self._closed

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
                self._write(group)
                self._untidy_since = self._untidy_since or time.monotonic()
                if not self._ledger.quiet_s or time.monotonic() > self._untidy_since + _BUSY_S:
                    self._tidy()
        self._ledger.close(broken=self._broken is not None)

    def _write(self, group: list[Job]) -> None:
        """Nothing after an error of the disk: a later sync would not prove that earlier pages were written."""
        if self._broken is not None:
            results: list[Any] = [RejectedCommit(self._broken)] * len(group)
        else:
            results = self._ledger.apply([commit for commit, _ in group])
        for result in results:
            if isinstance(result, RejectedCommit) and isinstance(result.error, StoreBroken | ForeignStore):
                self._broken = _broken(result.error)
        self._answer(group, results)

    def _next_group(self) -> tuple[list[Job], bool]:
        job = self._next()
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

    def _next(self) -> Job | None:
        """Wait for the next job; where none comes for a moment, the upkeep is done."""
        while self._untidy_since is not None:
            try:
                return self._queue.get(timeout=self._ledger.quiet_s)
            except Empty:
                self._tidy()
        return self._queue.get()

    def _answer(self, group: list[Job], results: list[Any]) -> None:
        def resolve() -> None:
            for (_, future), result in zip(group, results, strict=True):
                if future.done():
                    continue
                if isinstance(result, RejectedCommit):
                    future.set_exception(result.error)
                else:
                    future.set_result(result)

        try:
            self._loop.call_soon_threadsafe(resolve)
        except RuntimeError:
            self._closed = True  # the loop is closed, and nobody waits for a result any more

    def _tidy(self) -> None:
        self._untidy_since = None
        if self._broken is not None:
            return
        try:
            if self._ledger.tidy():
                self._untidy_since = time.monotonic()
        except (StoreBroken, ForeignStore) as error:
            self._broken = _broken(error)
        except StoreError:
            pass  # full or held by another program: it is tried again after the next group
        except Exception as error:  # noqa: BLE001  # guard: store writer - upkeep that fails must not stop commits
            log.error("upkeep of a store failed", exc_info=error)


def _broken(error: StoreBroken | ForeignStore) -> StoreBroken:
    return copy(error) if isinstance(error, StoreBroken) else StoreBroken(error.what)
