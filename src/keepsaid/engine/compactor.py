"""The compactor: lanes whose past is to be summarised, in the background, one summary of a lane at a time."""

from __future__ import annotations

import asyncio
import logging
from functools import partial
from typing import Protocol

from keepsaid.domain.lane import Lane
from keepsaid.errors import StoreError

_log = logging.getLogger("keepsaid.compactor")
_WAITING_MAX = 10_000


class LaneCompaction(Protocol):
    """What summarises one lane."""

    async def compact(self, lane: Lane, share: float = 0.0, *, at_once: bool = False) -> int:
        """Summarise a lane if it is due, or a share of its messages; returns how many summaries were made.

        `at_once` does not wait until a failed attempt may be repeated.
        """
        ...


class Compactor:
    """Works on the lanes that turns named; never more than `at_once` together, and each only once at a time.

    What is named here is a hint: it is lost with the process, and the lane's next message names it again.
    """

    def __init__(self, compaction: LaneCompaction, at_once: int = 2) -> None:
        self.hint = asyncio.Event()
        self._compaction = compaction
        self._at_once = at_once
        self._waiting: dict[Lane, float] = {}
        self._running: dict[Lane, asyncio.Task[None]] = {}

    def name(self, lane: Lane, share: float = 0.0) -> None:
        """A lane is due, or so full that a share of its messages has to give way."""
        if lane in self._waiting or len(self._waiting) < _WAITING_MAX:
            self._waiting[lane] = max(share, self._waiting.get(lane, 0.0))
            self.hint.set()

    async def compact_on_request(self, lane: Lane, *, at_once: bool = True) -> str:
        """Summarise all of a lane but its newest messages, or only if it is due; returns the outcome in words."""
        if lane in self._running or lane in self._waiting:
            return "I am busy with that already."
        made = await self._compaction.compact(lane, 1.0 if at_once else 0.0, at_once=at_once)
        return "A summary stands for what was said so far." if made else "There was nothing to take together."

    @property
    def busy(self) -> bool:
        """Whether any lane waits or is being summarised."""
        return bool(self._waiting or self._running)

    async def work(self) -> int | None:
        """Begin with as many waiting lanes as there are places for; those that end set the hint."""
        free = self._at_once - len(self._running)
        ready = [lane for lane in self._waiting if lane not in self._running][: max(0, free)]
        for lane in ready:
            task = asyncio.create_task(self._compact(lane, self._waiting.pop(lane)), name="compaction")
            self._running[lane] = task
            task.add_done_callback(partial(self._ended, lane))
        return None

    def _ended(self, lane: Lane, _: asyncio.Task[None]) -> None:
        del self._running[lane]
        if self._waiting:
            self.hint.set()

    async def _compact(self, lane: Lane, share: float) -> None:
        try:
            made = await self._compaction.compact(lane, share)
        except StoreError as error:
            _log.warning("lane not summarised: %s", error.what, extra={"code": error.code})
        except Exception as error:  # noqa: BLE001  # guard: engine loop - one lane's summary must not stop the others
            _log.error("lane not summarised", exc_info=error)
        else:
            if made:
                _log.info("lane summarised %d times", made)

    async def settled(self) -> None:
        """Wait until no lane waits or is being summarised."""
        while self.busy:
            await self.work()
            await asyncio.wait(list(self._running.values()))

    async def stop(self) -> None:
        """Leave what is not done; nothing of it is on disk."""
        running = list(self._running.values())
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)
