"""Errands: work that has a name, done beside everything else when a schedule says so."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass

from keepsaid.domain.schedule import Schedule, ScheduleRun
from keepsaid.errors import KeepsaidError
from keepsaid.text.normal import cut, normalise

_log = logging.getLogger("keepsaid.schedules")
_ERROR_CHARS_MAX = 500

End = Callable[[str, str], Awaitable[None]]
"""Writes down how a run ended: its verb, and why."""


@dataclass(frozen=True, slots=True)
class Errand:
    """What is done, given what the schedule says of it; False when it was broken off and is to be begun again.

    One that was cut short by the end of its process is begun `again` where doing it twice does no harm. It may take
    `limit_s` seconds; None for one that ends by itself when it is told to stop.
    """

    do: Callable[[Schedule, ScheduleRun], Awaitable[bool]]
    again: bool = False
    limit_s: float | None = 600.0


class Errands:
    """Those that are known by name, and those that are being done: a few at once."""

    def __init__(self, known: Mapping[str, Errand] | None = None, at_once: int = 4) -> None:
        self.known = dict(known or {})
        self._at_once = at_once
        self._doing: set[asyncio.Task[None]] = set()

    @property
    def room(self) -> int:
        """How many more may be begun."""
        return max(0, self._at_once - len(self._doing))

    @property
    def repeatable(self) -> tuple[str, ...]:
        """The names of those that are begun again."""
        return tuple(sorted(name for name, errand in self.known.items() if errand.again))

    def begin(self, run: ScheduleRun, schedule: Schedule, end: End) -> None:
        """Do one, and write down how it ended."""
        errand = self.known[schedule.new.text]
        task = asyncio.create_task(self._do(errand, run, schedule, end), name=f"errand-{schedule.new.text}")
        self._doing.add(task)
        task.add_done_callback(self._doing.discard)

    async def _do(self, errand: Errand, run: ScheduleRun, schedule: Schedule, end: End) -> None:
        verb, why = "fail", ""
        try:
            async with asyncio.timeout(errand.limit_s):
                verb = "execute" if await errand.do(schedule, run) else "release"
        except asyncio.CancelledError:
            await end("release" if errand.again else "interrupt", "the process was stopped")
            raise
        except TimeoutError:
            why = f"it took longer than {errand.limit_s:g} s" if errand.limit_s else "it took too long"
        except KeepsaidError as error:
            why = error.what
        except Exception as error:  # noqa: BLE001  # guard: engine loop - what one run does is its own, and stops no other
            _log.error("errand %s failed", schedule.new.text, exc_info=error)
            why = f"{type(error).__name__}: {error}"
        await end(verb, cut(normalise(why), _ERROR_CHARS_MAX))

    async def stop(self, patience_s: float) -> None:
        """Let them end for so many seconds, then break them off."""
        doing = list(self._doing)
        if doing:
            await asyncio.wait(doing, timeout=patience_s)
        for task in doing:
            task.cancel()
        with suppress(asyncio.CancelledError):
            await asyncio.gather(*doing, return_exceptions=True)
