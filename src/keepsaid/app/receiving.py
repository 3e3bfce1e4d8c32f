"""Messages that channels bring: each is stored once, and files that come later than their message are stored too."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace

from keepsaid.config import Config
from keepsaid.domain import commits, message
from keepsaid.domain.files import fitting
from keepsaid.domain.reply_parts import NoteUndelivered
from keepsaid.errors import InputError, KeyConflict
from keepsaid.ports.channel import Incoming
from keepsaid.ports.store import Store
from keepsaid.text.normal import cut, normalise
from keepsaid.values import frozen

_log = logging.getLogger("keepsaid.extensions")
_REPORT_CHARS_MAX = 500
_LATE = ":files"
"""The end of the key of an edit that brings files which its message lacks."""


@frozen
class ChannelReceiver:
    """Takes in what the channels of extensions bring, also by hooks; `ours` are these channels.

    A provider may send one message twice in two forms, such as Slack's `message` and `app_mention`. The first is kept.
    If only a later one has files, they are stored as an edit of the first: the order of the two has no say.
    """

    config: Config
    store: Store
    receiving: Callable[[message.Inbound], Awaitable[commits.Received]]
    ours: frozenset[str] = frozenset()

    async def take(self, channel: str, incoming: Incoming) -> commits.Received | None:
        """Store a message; None for one of a bot whose channel takes none. Raises InputError and StoreError."""
        if incoming.by_bot and not self.config.takes_bots(channel):
            return None
        inbound = self.inbound_of(channel, incoming)
        try:
            received = await self.receiving(inbound)
        except KeyConflict as conflict:
            received = await self._repeated(inbound, conflict)
        if incoming.undelivered:
            report = normalise(cut(incoming.text, _REPORT_CHARS_MAX))
            await self.store.apply(NoteUndelivered(channel, incoming.account, incoming.undelivered, report))
        return received

    async def take_all(self, channel: str, incoming: Sequence[Incoming]) -> None:
        """Store messages, those of one conversation in order; what cannot be taken is logged and left out."""
        by_place: dict[tuple[str, str], list[Incoming]] = {}
        for one in incoming:
            by_place.setdefault((one.account, one.conversation), []).append(one)
        taken = (self._take_in_order(channel, several) for several in by_place.values())
        for result in await asyncio.gather(*taken, return_exceptions=True):
            if isinstance(result, BaseException):
                raise result

    def inbound_of(self, channel: str, incoming: Incoming) -> message.Inbound:
        """What a channel of an extension brought, as a message. Raises InputError for a channel of none."""
        settings = self.config.channels.get(channel)
        if settings is None or channel not in self.ours:
            raise InputError(f"{channel} is not a channel of an extension", hint="keepsaid ext ls")
        who = incoming.conversation, incoming.sender, incoming.name, incoming.direct
        origin = message.Origin(channel, incoming.account, *who)
        origin = replace(origin, trust=self.config.trust_of(origin))
        marks = message.ProviderMarks(incoming.external_id, incoming.provider_id, incoming.reply_to)
        payload = incoming.text.encode("utf-8", "surrogatepass") if incoming.payload is None else incoming.payload
        content = message.Content(payload, incoming.text, incoming.event)
        return message.Inbound(
            origin,
            content,
            marks,
            settings.priority,
            incoming.topic,
            conversation_name=incoming.conversation_name,
            addressed=incoming.addressed,
            more_ms=incoming.more_ms,
            by_bot=incoming.by_bot,
            files=fitting(incoming.files),
        )

    async def _take_in_order(self, channel: str, incoming: Sequence[Incoming]) -> None:
        for one in incoming:
            try:
                await self.take(channel, one)
            except InputError as error:
                _log.warning("a message of %s is not taken: %s", channel, error.what, extra={"code": error.code})

    async def _repeated(self, inbound: message.Inbound, conflict: KeyConflict) -> commits.Received:
        """The receipt of a message that comes again in another form; files that the first lacks are stored.

        Raises KeyConflict where it is another message: its provider has given one key twice.
        """
        first = await self.store.story(conflict.first_id)
        if first is None or not _is_same(first.message.inbound, inbound):
            raise conflict
        if inbound.files and not await self.store.files.of_messages([first.message.id]):
            content = replace(inbound.content, event=inbound.content.event or message.EDITED)
            marks = replace(inbound.marks, external_id=f"{inbound.marks.external_id}{_LATE}")
            try:
                return await self.receiving(replace(inbound, content=content, marks=marks))
            except KeyConflict as late:
                _log.debug("the files of message %d come again: %s", conflict.first_id, late.what)
        return commits.Received(
            commits.IntakeResult.DUPLICATE, first.message.id, first.message.lane, first.message.number
        )


def _is_same(first: message.Inbound, again: message.Inbound) -> bool:
    """Whether two messages with one key are one message to their provider."""
    if again.marks.provider_id is None or first.marks.provider_id != again.marks.provider_id:
        return False
    return first.origin.sender == again.origin.sender
