"""What the listener of a channel is tried with: an inbox in memory that can refuse, and the states its line was in."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence

from keepsaid.domain.line import Cursor, LineState
from keepsaid.errors import StoreError
from keepsaid.ports.channel import Incoming

_WITHIN_S = 30.0


class MemoryInbox:
    """Keeps each message once, by its `external_id`, and then the cursors of all accounts in `stored`, by name.

    While `refuses` says so a call keeps nothing, while `half_refuses` does it keeps the messages and no cursor; both
    raise StoreError. Calls wait for `held`, if it is set to an event; `entered` is set by each.
    """

    def __init__(self) -> None:
        self.kept: dict[str, Incoming] = {}
        self.stored: dict[str, str] = {}
        self.calls = 0
        self.repeats = 0
        self.refuses: Callable[[], bool] = never
        self.half_refuses: Callable[[], bool] = never
        self.held: asyncio.Event | None = None
        self.entered = asyncio.Event()
        self._news = asyncio.Condition()

    @property
    def texts(self) -> list[str]:
        """What was said, in the order in which it was kept."""
        return [one.text for one in self.kept.values()]

    @property
    def last(self) -> Incoming:
        """The message that was kept last."""
        return list(self.kept.values())[-1]

    async def put(self, incoming: Incoming) -> bool:
        """Keep a message; False when it was there."""
        is_new = incoming.external_id not in self.kept
        await self.put_all([incoming])
        return is_new

    async def put_all(self, incoming: Sequence[Incoming], cursors: Sequence[Cursor] = ()) -> None:
        """Keep messages, then cursors. Raises StoreError, and AssertionError for a message without a key."""
        self.calls += 1
        self.entered.set()
        if self.held is not None:
            await self.held.wait()
        async with self._news:
            self._news.notify_all()
            if self.refuses():
                raise StoreError("the disk is full")
            for one in incoming:
                assert one.external_id is not None, "a message without a key comes twice after a crash"
                self.repeats += one.external_id in self.kept
                self.kept.setdefault(one.external_id, one)
            if self.half_refuses():
                raise StoreError("the disk is full")
            self.stored |= {cursor.name: cursor.value for cursor in cursors}

    async def cursors(self, account: str) -> Mapping[str, str]:  # noqa: ARG002 - of the only account
        """The cursors that are kept."""
        return dict(self.stored)

    async def wait_for(self, done: Callable[[], bool]) -> None:
        """Wait until something is so after a call; raises TimeoutError."""
        async with asyncio.timeout(_WITHIN_S), self._news:
            await self._news.wait_for(done)

    async def wait_for_count(self, count: int) -> None:
        """Wait until at least that number of messages is kept; raises TimeoutError."""
        await self.wait_for(lambda: len(self.kept) >= count)


def never() -> bool:
    """Refuse nothing."""
    return False


def times(count: int) -> Callable[[], bool]:
    """Refuse the next calls, `count` of them."""
    left = [None] * count
    return lambda: bool(left) and left.pop() is None


class LineLog:
    """Every state in which a line was shown, with its reason and the milliseconds until the next try."""

    def __init__(self) -> None:
        self.shown: list[tuple[LineState, str, int]] = []
        self._news = asyncio.Event()

    @property
    def states(self) -> list[LineState]:
        """The states alone."""
        return [state for state, _, _ in self.shown]

    @property
    def reasons(self) -> list[str]:
        """The reasons alone."""
        return [reason for _, reason, _ in self.shown]

    def show(self, state: LineState, reason: str = "", next_try_ms: int = 0) -> None:
        """Keep a state."""
        self.shown.append((state, reason, next_try_ms))
        self._news.set()

    async def wait_for(self, state: LineState, count: int = 1) -> tuple[LineState, str, int]:
        """Wait until a state was shown so often; returns how it was shown last. Raises TimeoutError."""
        await self._until(lambda: self.states.count(state) >= count)
        return [one for one in self.shown if one[0] is state][-1]

    async def until_now(self, state: LineState) -> str:
        """Wait until the line is so; returns the reason. Raises TimeoutError."""
        await self._until(lambda: self.states[-1:] == [state])
        return self.shown[-1][1]

    async def until_reason(self, part: str) -> None:
        """Wait until the reason of the line has a part. Raises TimeoutError."""
        await self._until(lambda: bool(self.shown) and part in self.shown[-1][1])

    async def _until(self, done: Callable[[], bool]) -> None:
        async with asyncio.timeout(_WITHIN_S):
            while not done():
                self._news.clear()
                await self._news.wait()
