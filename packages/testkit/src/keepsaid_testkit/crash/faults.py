"""Known faults: each breaks a promise, and is built into a life from outside, to put the judge to the test.

None of them is in the program: they wrap its ports, in the child process that is to be killed, and nowhere else.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from keepsaid.domain.commits import IntakeResult, Receive, Received
from keepsaid.domain.message import Lane
from keepsaid.domain.process import VoidLeases
from keepsaid.domain.reply import Delivered, SendResult, StoredReply
from keepsaid.values import frozen
from keepsaid_testkit.crash.parted import in_parts

REPEAT_UNSAFE = "repeat-unsafe"
_LATE_S = 0.05

Applied = Callable[[Any, Any], Any]
"""Applies a commit to a store (the first argument) in its own way."""

Sent = Callable[[Any, StoredReply], Any]
"""Sends a reply by a channel (the first argument) in its own way."""


class _Wrapped:
    """Another object, but for one method."""

    def __init__(self, other: Any, method: str, wrap: Callable[[Any, Any], Any]) -> None:
        self._other, self._method, self._wrap = other, method, wrap

    def __getattr__(self, name: str) -> Any:
        """The method that is wrapped, or what the other has."""
        if name != self._method:
            return getattr(self._other, name)

        async def wrapped(*given: Any) -> Any:
            return await self._wrap(self._other, *given)

        return wrapped


@frozen
class Wraps:
    """What a fault does to the operational store, to memory, and to channels; `broken` is the promise it breaks."""

    broken: str = ""
    meaning: str = ""
    applied: Applied | None = None
    kept: Callable[..., Any] | None = None
    sent: Sent | None = None

    def stores(self, opening: Callable[..., Any]) -> Callable[..., Any]:
        """Opens both stores, wrapped."""

        async def opened(*given: Any) -> Any:
            operations, memories = await opening(*given)
            if self.applied is not None:
                operations = _Wrapped(operations, "apply", self.applied)
            return operations, memories if self.kept is None else _Wrapped(memories, "keep", self.kept)

        return opened

    def channels(self, making: Callable[..., Any]) -> Callable[..., Any]:
        """Makes the channels, wrapped."""

        def made(*given: Any) -> Any:
            channels, hooks = making(*given)
            if self.sent is not None:
                channels = {name: _Wrapped(one, "send", self.sent) for name, one in channels.items()}
            return in_parts(channels), hooks

        return made


_waiting: set[asyncio.Task[Any]] = set()


async def _too_soon(store: Any, commit: Any) -> Any:
    """Say that a message is stored, and store it a moment later."""
    if not isinstance(commit, Receive):
        return await store.apply(commit)

    async def late() -> None:
        await asyncio.sleep(_LATE_S)
        await store.apply(commit)

    task = asyncio.create_task(late())
    _waiting.add(task)
    task.add_done_callback(_waiting.discard)
    origin = commit.arrival.inbound.origin
    lane = Lane(origin.channel, origin.account, origin.conversation, f"root:{origin.conversation}")
    return Received(IntakeResult.STORED, commit.arrival.id, lane, 1)


async def _leases_kept(store: Any, commit: Any) -> Any:
    """Leave what dead processes held to them."""
    return () if isinstance(commit, VoidLeases) else await store.apply(commit)


async def _no_label(channel: Any, reply: StoredReply) -> Any:
    """Send again as if for the first time."""
    return await channel.send(replace(reply, possible_duplicate=False))


async def _only_said(_channel: Any, _reply: StoredReply) -> Any:
    """Say that it was sent."""
    return SendResult(Delivered.CONFIRMED, "it was not")


async def _forgotten(memories: Any, said: Any, *given: Any) -> Any:
    """Remember all but the first thing said."""
    return (0, *await memories.keep(said[1:], *given)) if len(said) > 1 else (0,)


FAULTS: Mapping[str, Wraps] = MappingProxyType(
    {
        "acknowledge-early": Wraps("kept", "a message is acknowledged before it is on disk", applied=_too_soon),
        "forget-leases": Wraps("once", "what a killed process was working on is not taken up", applied=_leases_kept),
        "hide-copies": Wraps("answered", "a reply that may have arrived is sent again unmarked", sent=_no_label),
        "invent-receipts": Wraps("answered", "a reply is called sent and was not", sent=_only_said),
        REPEAT_UNSAFE: Wraps("effects", "an unsafe tool is called again when its result is not known"),
        "forget-episodes": Wraps("memory", "what was said is not all remembered", kept=_forgotten),
    }
)
"""Every known fault by its name."""
