"""Forgetting, by its owner's word: what is named, what would go, and the receipt of what went."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence

from keepsaid.domain.forgetting import ForgetSelector, Forgetting
from keepsaid.domain.ids import read
from keepsaid.domain.memory import OWNER, Listener, Memory
from keepsaid.engine.forgetter import Forgetter
from keepsaid.errors import InputError
from keepsaid.ports.store import MemoryStore
from keepsaid.text.normal import cut, normalise, span_in
from keepsaid.values import frozen

_SHOWN_MAX = 20
_UNDO_MS_MAX = 30 * 86_400_000
_OWNER = Listener(None, everything=True)
_SAFE = "Nothing was changed."
_UNDER_WAY_MS = 5_000
"""So long an undo waits for its request, if that is under way."""
_HINT = "keepsaid memory forget --help"


@frozen
class ForgetRequest:
    """What is to be forgotten, as it was typed."""

    ids: tuple[str, ...] = ()
    person: str = ""
    conversation: str = ""
    text: str = ""
    undo_for: str = ""


@frozen
class ForgetPreview:
    """What would go, counted by place as in the receipt, with the first 20 memories of it in any state."""

    counts: Mapping[str, int]
    memories: Sequence[Memory]


@frozen
class ForgetReceipt:
    """A request as far as it is done, and the backups that still hold what went."""

    request: Forgetting
    backups: Sequence[str]


def parse_request(asked: ForgetRequest) -> ForgetSelector:
    """Return the selector of a request; raises InputError for an invalid id, for none, and for two criteria."""
    memories, messages = [], []
    for given in asked.ids:
        memory, message = read("memory", given), read("message", given)
        if given.startswith("msg_") and message is not None:
            messages.append(message)
        elif memory is not None:
            memories.append(memory)
        else:
            raise InputError(f"{given} names no memory and no message", safe=_SAFE, hint="keepsaid memory ls")
    ways = [bool(asked.ids), *(bool(way.strip()) for way in (asked.person, asked.conversation, asked.text))]
    if sum(ways) != 1:
        raise InputError("name ids, or a person, or a conversation, or a text: one of these", safe=_SAFE, hint=_HINT)
    person, conversation, text = (normalise(one.strip()) for one in (asked.person, asked.conversation, asked.text))
    return ForgetSelector(tuple(memories), tuple(messages), person, conversation, text)


def undo_ms(text: str) -> int:
    """For how long it can be undone, in milliseconds: `30d`, `12h`, `45m` or `90s`; 0 for "". Raises InputError."""
    if not text.strip():
        return 0
    span_ms = span_in(text)
    if span_ms is None or not 0 < span_ms <= _UNDO_MS_MAX:
        what = f"{cut(text, 40)!r} is not a time for undo: use 30d, 12h, 45m or 90s, 30 days at most"
        raise InputError(what, safe=_SAFE, hint=_HINT)
    return span_ms


@frozen
class ForgettingService:
    """Forgets. A runtime that is up works off what was asked beside its work; `wake` it then; else it is done here."""

    forgetter: Forgetter
    memories: MemoryStore
    backups: Callable[[int], Sequence[str]]
    is_running: Callable[[], bool]
    wake: asyncio.Event

    async def preview(self, asked: ForgetRequest) -> ForgetPreview:
        """Count what would go; nothing is changed. Raises InputError for what `forget` would refuse."""
        undo_ms(asked.undo_for)
        wanted = await self.forgetter.find_targets(parse_request(asked))
        first = [await self.memories.get(_OWNER, number) for number in wanted.memories[:_SHOWN_MAX]]
        counts = await self.forgetter.count(wanted)
        return ForgetPreview(dict(counts), [one for one in first if one is not None])

    async def forget(self, asked: ForgetRequest, by: str = OWNER) -> ForgetReceipt:
        """Forget, by the word of a person; raises InputError where there is nothing to forget."""
        done = await self.forget_selected(parse_request(asked), by, undo_ms(asked.undo_for))
        if done is None:
            raise InputError("nothing that is stored has that id or text", safe=_SAFE, hint="keepsaid memory ls")
        return ForgetReceipt(done, await asyncio.to_thread(self.backups, done.requested_at))

    async def forget_selected(self, wish: ForgetSelector, by: str, undo_for_ms: int = 0) -> Forgetting | None:
        """Forget what a selector names: no read returns it when this returns; None if it selects nothing."""
        begun = await self.forgetter.forget(wish, by, undo_for_ms)
        if begun is None or not self.is_running():
            return None if begun is None else await self.forgetter.finish(begun.id)
        self.wake.set()
        return begun

    async def undo(self, name: str) -> Forgetting:
        """Put back what a request took, once it is through; raises InputError where that cannot be."""
        number = read("forgetting", name)
        if number is not None and self.is_running():
            await self.forgetter.settled(_UNDER_WAY_MS, number)
        done = None if number is None else await self.forgetter.undo(number)
        if done is None:
            raise InputError(f"{name} cannot be undone", safe=_SAFE, hint="keepsaid memory forgotten")
        return done
