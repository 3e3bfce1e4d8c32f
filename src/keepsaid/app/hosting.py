"""Hosting: what the runtime does in the name of an extension, and the messages that extensions hand over."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass

from keepsaid.app.telling import Telling
from keepsaid.config import Config
from keepsaid.domain.commits import Intake, Received
from keepsaid.domain.commits import Tell as Told
from keepsaid.domain.event import Event
from keepsaid.domain.message import Content, Inbound, Marks, Origin
from keepsaid.domain.process import NotifyOwner
from keepsaid.domain.prompt import Json
from keepsaid.domain.reply import ReplyDraft
from keepsaid.errors import ExtensionError, InputError
from keepsaid.events.catalog import USER_MESSAGE
from keepsaid.ports.channel import Incoming
from keepsaid.ports.runtime import Clock, Hints, Ids
from keepsaid.ports.store_views import Operations
from keepsaid.text.normal import normalise

_KNOWN_MS = 30 * 86_400_000
"""So long it is known what the owner was told."""

_SAID = ("text", "user_id", "channel_id", "conversation_id")


@dataclass(frozen=True, slots=True)
class Host:
    """The runtime as its extensions may use it; `ours` are the channels that belong to extensions."""

    config: Config
    store: Operations
    telling: Telling
    receiving: Callable[[Inbound], Awaitable[Received]]
    clock: Clock
    ids: Ids
    hints: Hints
    ours: frozenset[str] = frozenset()

    async def emit(self, extension: str, topic: str, payload: Mapping[str, Json], correlation_id: str) -> None:
        """Tell of a fact; what somebody said goes into the buffer like any other message."""
        if topic == USER_MESSAGE:
            await self._said(extension, payload, correlation_id)
        else:
            await self.telling.emit(topic, payload, correlation_id)

    async def subscribe(self, name: str, topic: str, tell: Callable[[Event], Awaitable[object]]) -> None:
        """Tell somebody of a topic."""
        await self.telling.subscribe(name, (topic,), tell)

    async def notify(self, extension: str, text: str, about: str) -> None:
        """Put a notice to the owner in the outbox."""
        now = self.clock.now_ms()
        draft = ReplyDraft(self.ids.next(), normalise(text), notice=True)
        name = f"notice:{extension}:{about}" if about else f"notice:{extension}:{draft.id:x}"
        if not await self.store.apply(NotifyOwner(draft, normalise(name), now + _KNOWN_MS, now)):
            raise ExtensionError(f"{extension} has something to tell, and the owner has not written here yet")
        self.hints.deliver.set()

    async def receive(self, channel: str, incoming: Incoming) -> bool:
        """Take in a message that an extension's channel brought."""
        settings = self.config.channels.get(channel)
        if settings is None or channel not in self.ours:
            raise InputError(f"{channel} is no channel of an extension", hint="keepsaid ext ls")
        origin = Origin(channel, "default", incoming.conversation, incoming.sender, incoming.name, incoming.direct)
        origin = Origin(*_who(origin), incoming.direct, self.config.trust_of(origin))
        marks = Marks(incoming.external_id, incoming.provider_id, incoming.reply_to)
        payload = incoming.text.encode("utf-8", "surrogatepass") if incoming.payload is None else incoming.payload
        content = Content(payload, incoming.text)
        received = await self.receiving(Inbound(origin, content, marks, settings.priority, incoming.topic))
        return received.intake is Intake.STORED

    async def told(self, topic: str, payload: Mapping[str, Json], about: str) -> None:
        """Tell of what became of an extension."""
        await self.store.apply(Told(topic, json.dumps(dict(payload)), self.clock.now_ms(), about))

    async def _said(self, extension: str, payload: Mapping[str, Json], correlation_id: str) -> None:
        """A `user.message` {text, user_id, channel_id}: told twice under one correlation id, it is kept once."""
        text, user, channel, conversation = (payload.get(name) for name in _SAID)
        if not isinstance(text, str) or not isinstance(user, str) or not user:
            raise InputError(f"{USER_MESSAGE} needs text and user_id, both texts")
        external = f"{extension}:{correlation_id}" if correlation_id else None
        where = str(conversation or user)
        incoming = Incoming(text, user, where, external, direct=conversation is None)
        await self.receive(str(channel or extension), incoming)


def _who(origin: Origin) -> tuple[str, str, str, str, str]:
    return origin.channel, origin.account, origin.conversation, origin.sender, origin.name
