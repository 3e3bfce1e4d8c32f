"""Lines of channels: each account's state as its listener shows it, written down and told when it changes."""

from __future__ import annotations

import json
import logging
from asyncio import Event
from collections.abc import Callable, Sequence
from dataclasses import replace

from keepsaid.domain.commits import Tell
from keepsaid.domain.line import Line, LineState
from keepsaid.ports.runtime import Clock
from keepsaid.ports.store_views import Operations

_log = logging.getLogger("keepsaid.channels")
UP, DOWN = "channel.up", "channel.down"
"""The topics of events about lines."""


class LineBoard:
    """The lines of this process. `keep` writes all of them down for whoever asks from outside; it may raise OSError."""

    def __init__(self, operations: Operations, clock: Clock, keep: Callable[[Sequence[Line]], None]) -> None:
        self.hint = Event()
        self._operations = operations
        self._clock = clock
        self._keep = keep
        self._lines: dict[tuple[str, str], Line] = {}
        self._told: dict[tuple[str, str], Line] = {}

    @property
    def lines(self) -> Sequence[Line]:
        return tuple(self._lines.values())

    def keeper(self, channel: str, account: str) -> KeptLine:
        """What an account's listener shows its state by."""
        self.show(Line(channel, account, since=self._clock.now_ms()))
        return KeptLine(self, (channel, account), self._clock.now_ms)

    def show(self, line: Line) -> None:
        """The line is so now."""
        before = self._lines.get(place := (line.channel, line.account))
        is_same = before is not None and (before.state, before.reason) == (line.state, line.reason)
        last_ok = line.since if line.state is LineState.UP else before.last_ok if before is not None else 0
        since = before.since if is_same and before is not None else line.since
        self._lines[place] = replace(line, since=since, last_ok=last_ok)
        if not is_same:
            self.hint.set()

    async def work(self) -> None:
        """Write down what changed, and publish which line opened or closed."""
        self.hint.clear()
        now = dict(self._lines)
        changed = [line for place, line in now.items() if self._told.get(place) != line]
        if not changed:
            return
        try:
            self._keep(self.lines)
        except OSError as error:
            _log.warning("the state of channels cannot be written down (%s)", error.strerror)
        for line in changed:
            await self._tell(line, self._told.get((line.channel, line.account)))
            self._told[line.channel, line.account] = line

    async def _tell(self, line: Line, before: Line | None) -> None:
        if line.state is LineState.CONNECTING or (before is not None and before.state is line.state):
            return
        place = {"channel": line.channel, "account": line.account}
        if line.state is LineState.UP:
            _log.info("%s (%s) is up", line.channel, line.account)
            await self._operations.apply(Tell(UP, json.dumps(place), self._clock.now_ms()))
        else:
            _log.warning("%s (%s) is %s: %s", line.channel, line.account, line.state, line.reason)
            told = {**place, "state": line.state.value}
            await self._operations.apply(Tell(DOWN, json.dumps(told), self._clock.now_ms()))


class KeptLine:
    """The line of one account on the board."""

    def __init__(self, board: LineBoard, place: tuple[str, str], now_ms: Callable[[], int]) -> None:
        self._board = board
        self._place = place
        self._now_ms = now_ms

    def show(self, state: LineState, reason: str = "", next_try_ms: int = 0) -> None:
        """The line is so now; `next_try_ms` is in how long it is tried again, milliseconds."""
        now = self._now_ms()
        self._board.show(Line(*self._place, state, now, 0, reason, now + next_try_ms if next_try_ms else 0))
