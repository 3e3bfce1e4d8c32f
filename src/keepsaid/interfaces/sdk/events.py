"""What happens, told to a program that uses the library; and what that program has to tell."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from keepsaid.app.instance import Instance
from keepsaid.domain.event import Event
from keepsaid.domain.prompt import Json
from keepsaid.errors import InputError
from keepsaid.events.catalog import USER_MESSAGE
from keepsaid.interfaces.sdk.inbox import Inbox
from keepsaid.interfaces.sdk.values import CHANNEL, Message
from keepsaid.interfaces.transfer import cloud_event, subject_in

_UNTOLD = "Nothing was stored."


class EventBook:
    """Facts that happened; every event is a dict in the shape of CloudEvents 1.0."""

    def __init__(self, instance: Instance, inbox: Inbox) -> None:
        self._instance = instance
        self._inbox = inbox

    async def subscribe(
        self,
        name: str,
        topics: str | tuple[str, ...],
        tell: Callable[[dict[str, Any]], Awaitable[object]],
        *,
        from_start: bool = False,
    ) -> None:
        """Tell `tell` of these topics (`turn.committed`, `memory.*`) while this home is open.

        The name is remembered: after a restart, subscribe again under it and hear of what happened meanwhile. Each
        event is told at least once, those about the same in order. What raises, or takes over a minute, comes again
        after one second, then after two and so on, and is dead after the eighth attempt (`keepsaid events dead`).
        Raises InputError for what is no topic.
        """

        async def deliver(event: Event) -> None:
            await tell(cloud_event(event))

        wanted = (topics,) if isinstance(topics, str) else tuple(topics)
        await self._instance.telling.subscribe(name, wanted, deliver, from_start=from_start)

    async def unsubscribe(self, name: str) -> bool:
        """Tell a subscriber of nothing any more; what was on its way to it is dropped. False when it is not known."""
        return await self._instance.telling.unsubscribe(name)

    async def emit(self, topic: str, payload: Mapping[str, Json], about: str = "") -> None:
        """Tell of a fact of your own (`deploy.finished`), `about` something; returns once it is on disk.

        Put ids into the payload and not what people said: what is forgotten is not looked for there. Raises
        InputError for topics that are the runtime's own, and for over 64 kB.

        `user.message` {text, user_id} is what somebody said (seed 002): it goes into the buffer as a message of this
        program's own channel, trusted as that channel is, and once for each `about`.
        """
        if topic == USER_MESSAGE:
            await self._inbox.put(_said(payload, about))
            return
        await self._instance.telling.emit(topic, payload, about)

    async def wait_for(self, topic: str, about: str, timeout_s: float, after: str = "0") -> dict[str, Any] | None:
        """The first event of a topic about something, after the event of this id; None when there is none in time.

        It may have happened before the call, or before a restart. Messages are not waited for so: put one and wait
        for its reply.
        """
        if not (after.isascii() and after.isdigit()):
            raise InputError(
                f"{after!r} is no id of an event", safe="Nothing was changed.", hint="keepsaid events tail"
            )
        found = await self._instance.telling.wait_for(topic, subject_in(topic, about), timeout_s, int(after))
        return None if found is None else cloud_event(found)


def _said(payload: Mapping[str, Json], about: str) -> Message:
    """A `user.message` as a message: in a conversation of its sender alone, unless one is named."""
    text, user, channel, where = (payload.get(name) for name in ("text", "user_id", "channel_id", "conversation_id"))
    if not isinstance(text, str) or not isinstance(user, str) or not user:
        raise InputError(f"{USER_MESSAGE} needs text and user_id, both texts", safe=_UNTOLD)
    if channel not in (None, CHANNEL):
        raise InputError(f"{USER_MESSAGE} comes by {CHANNEL}, the channel of programs, and by no other", safe=_UNTOLD)
    named = f"{USER_MESSAGE}:{about}" if about else None
    return Message(text, user, str(where or user), external_id=named, direct=where is None)
