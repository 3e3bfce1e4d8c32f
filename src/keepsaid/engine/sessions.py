"""Sessions at rest: those of quiet lanes sleep after a minute and end after an hour (design: section 4.2)."""

from __future__ import annotations

from typing import Protocol

from keepsaid.domain.session import Rest, SessionTerms
from keepsaid.ports.runtime import Clock
from keepsaid.ports.store import Operations
from keepsaid.ports.store_views import SessionView

LOOKED_MAX = 100
"""Sessions of a kind that one commit looks at."""

_POLL_MS = 5_000
_PAUSE_MS = 20
"""Between two commits, so that intake goes first."""


class SessionStore(Operations, SessionView, Protocol):
    """Whose sessions they are."""


class Sleepers:
    """Lets sessions sleep and end when their time comes; until then it only reads when that is.

    Lanes are quiet by the steady clock, so that a wall clock that was set neither ends nor keeps a session.
    """

    def __init__(self, store: SessionStore, clock: Clock, terms: SessionTerms) -> None:
        self._store = store
        self._clock = clock
        self._terms = terms

    @property
    def poll_ms(self) -> int:
        """How often it is asked when the next is due: often enough that none is much later than its time."""
        return min(_POLL_MS, self._terms.sleep_ms)

    async def work(self) -> int | None:
        """Take what is due, a little at a time; returns when to come again, None when no lane is quiet yet."""
        terms, steady = self._terms, self._clock.steady_ms()
        active, sleeping = await self._store.quiet_since()
        dues = [active + terms.sleep_ms] if active is not None else []
        dues += [sleeping + terms.end_ms] if sleeping is not None else []
        if not dues:
            return None
        if min(dues) > steady and max(active or 0, sleeping or 0) <= steady:
            return self._clock.due_ms() + min(dues) - steady
        before = (steady - terms.sleep_ms, steady - terms.end_ms)
        await self._store.apply(Rest(*before, steady, self._clock.now_ms(), LOOKED_MAX))
        return self._clock.due_ms() + _PAUSE_MS
