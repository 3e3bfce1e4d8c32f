"""Nostr as a channel that answers: a reply is encrypted once for each participant, and published to their relays."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from dataclasses import replace

from keepsaid.adapters.channels.abilities import NOSTR
from keepsaid.adapters.channels.nostr.directory import NostrDirectory
from keepsaid.adapters.channels.nostr.files import NostrFiles
from keepsaid.adapters.channels.nostr.parts import NostrEvent, NostrPart, bodies_of, part_of
from keepsaid.adapters.channels.nostr.people import CONVERSATION, NostrPeople
from keepsaid.adapters.channels.nostr.pool import NostrPool
from keepsaid.adapters.channels.nostr.publishing import NostrPublisher, Published, PublishState
from keepsaid.adapters.channels.nostr.reactions import reaction_of
from keepsaid.adapters.channels.nostr.rumors import NAME
from keepsaid.adapters.channels.nostr.socket import NostrDown
from keepsaid.adapters.channels.nostr.uploading import NostrUploads, UploadState
from keepsaid.adapters.channels.pace import SendingPace
from keepsaid.adapters.channels.sending import send_parts
from keepsaid.domain.message import Attachment, Lane
from keepsaid.domain.reply import Delivered, Sending, SendResult, StoredReply
from keepsaid.domain.reply_parts import ReplyPart
from keepsaid.errors import FileRefused, StoreError, ToolError
from keepsaid.ports.channel import ReactionTarget
from keepsaid.text.emoji import is_emoji

_THROTTLED_MS = 30_000
_PATIENT_MS = 600_000
"""After so long one participant of a room who has the message is enough; the others get it in the background."""

_NOT_DELIVERABLE = "not_deliverable: the receiver names no relays for messages (kind 10050)"
_LATEST_MAX = 1_000


class NostrChannel:
    """Sends for one account; `fallback` are relays for receivers who name none, `files` fetches what people send.

    `uploads` brings what goes with replies to servers of files; without these nothing does.
    """

    name = NAME
    sending = Sending.PUSH
    abilities = NOSTR

    def __init__(
        self,
        pool: NostrPool,
        people: NostrPeople,
        pace: SendingPace,
        fallback: Sequence[str] = (),
        files: NostrFiles | None = None,
        uploads: NostrUploads | None = None,
    ) -> None:
        self.account = pool.keys.public
        self._pool = pool
        self._people = people
        self._pace = pace
        self._fallback = tuple(fallback)
        self._files = files or NostrFiles()
        self._uploads = uploads or NostrUploads(pool)
        self.abilities = replace(NOSTR, uploads=self._uploads.bytes_max)
        self._directory = NostrDirectory(pool)
        self._publisher = NostrPublisher(pool)
        self._latest: dict[str, int] = {}

    async def send(self, reply: StoredReply) -> SendResult:
        """Send all parts at once, for what is only tried; never raises."""
        try:
            return await send_parts(self, reply)
        except StoreError as error:
            return SendResult(Delivered.RETRY, f"not sent: {error.what}", outage=True)

    async def split(self, reply: StoredReply) -> Sequence[str]:
        """The events of each part as JSON: encrypted and signed here, once for all tries. Raises StoreError.

        The relays are not in it: they are looked up at each try, as a receiver may move.
        """
        people = await self._people.find(reply.lane.conversation)
        files = await self._uploads.seal(reply) if people is not None else ()
        at_s = self._next_time(reply.lane.conversation)
        bodies = await asyncio.to_thread(bodies_of, reply, people, self._pool.keys, at_s, files)
        self._latest[reply.lane.conversation] = at_s + len(bodies) - 1
        return bodies

    async def send_part(self, reply: StoredReply, part: ReplyPart) -> SendResult:
        """Publish the events of a part once; never raises."""
        if reply.lane.account != self.account:
            return SendResult(Delivered.REFUSED, f"the account {reply.lane.account} is not set up here any more")
        if not reply.lane.conversation.startswith(CONVERSATION):
            return SendResult(Delivered.DEAD, f"{reply.lane.conversation} is not a direct conversation of Nostr")
        made = part_of(part.body)
        if made.refusal:
            return SendResult(Delivered.DEAD, made.refusal)
        if (held_ms := await self._pace.enter(reply.lane.conversation)) is not None:
            return SendResult(Delivered.RETRY, "the rate limit is reached", retry_after_ms=held_ms, outage=True)
        result = await self._sent(reply, made)
        if result.retry_after_ms is not None:
            self._pace.hold(reply.lane.conversation, result.retry_after_ms)
        return result

    async def react(self, lane: Lane, target: ReactionTarget, emoji: str) -> None:
        """Publish a reaction to a message of the lane; raises ToolError, and StoreError."""
        if lane.account != self.account:
            raise ToolError(f"the account {lane.account} is not set up here any more")
        if not is_emoji(emoji):
            raise ToolError("emoji must be one emoji of Unicode")
        people = await self._people.find(lane.conversation)
        part = await asyncio.to_thread(reaction_of, target, emoji, people, self._pool.keys)
        if await self._pace.enter(lane.conversation) is not None:
            raise ToolError("the rate limit of this conversation is reached; nothing was done")
        result = await self._publish(part, _PATIENT_MS)
        if result.outcome is not Delivered.CONFIRMED:
            raise ToolError("no relay of the others has confirmed the reaction; whether they see it is not known")

    def fetch(self, account: str, file: Attachment) -> AsyncGenerator[bytes, None]:
        """The bytes of a file that was sent to this account, decrypted."""
        if account != self.account:
            raise FileRefused(f"the account {account} is not set up here any more")
        return self._files.pieces(file.ref)

    async def close(self) -> None:
        """Close the connections; what is published in the background is given up."""
        await self._files.close()
        await self._uploads.close()
        await self._publisher.close()
        await self._pool.close()

    async def _sent(self, reply: StoredReply, part: NostrPart) -> SendResult:
        """Publish a part, and before it have a server keep its file; words where that cannot be."""
        if part.file is None:
            return await self._publish(part, self._age_ms(reply))
        brought = await self._uploads.bring(reply, part.file)
        if brought.state is UploadState.AWAY:
            what, wait_ms = f"not sent: {brought.detail}", brought.retry_after_ms
            return SendResult(Delivered.RETRY, what, retry_after_ms=wait_ms, outage=True)
        result = await self._publish(part.instead.get(brought.state.value, part), self._age_ms(reply))
        if result.outcome is Delivered.CONFIRMED and brought.detail:
            return replace(result, detail=f"a file was not sent: {brought.detail}")
        return result

    async def _publish(self, part: NostrPart, age_ms: int) -> SendResult:
        """Publish the events of a part to all receivers, and the account's own copy in the background.

        `age_ms` is for how long it was tried before, milliseconds.
        """
        others = [event for event in part.events if event.receiver != self.account]
        found = await asyncio.gather(*(self._deliver(event) for event in others))
        kept = sum(one.state is PublishState.KEPT for one in found)
        result = _result_of(found, is_patient=not kept or age_ms < _PATIENT_MS)
        if result.outcome is not Delivered.CONFIRMED:
            return result
        for event, one in zip(others, found, strict=True):
            if one.state not in (PublishState.KEPT, PublishState.REFUSED):
                await self._deliver_later(event)
        for event in part.events:
            if event.receiver == self.account:
                self._publisher.publish_later(event, self._pool.own)
        return SendResult(Delivered.CONFIRMED, result.detail, part.rumor)

    async def _deliver(self, event: NostrEvent) -> Published:
        """Publish an event to the relays of its receiver."""
        try:
            relays = await self._directory.relays_of(event.receiver) or self._fallback
        except NostrDown as error:
            return Published(PublishState.UNSENT, str(error))
        if not relays:
            return Published(PublishState.REFUSED, _NOT_DELIVERABLE)
        result = await self._publisher.publish(event, relays)
        if result.state is not PublishState.KEPT:
            self._directory.forget(event.receiver)
        return result

    async def _deliver_later(self, event: NostrEvent) -> None:
        try:
            self._publisher.publish_later(event, await self._directory.relays_of(event.receiver) or self._fallback)
        except NostrDown:
            return

    def _age_ms(self, reply: StoredReply) -> int:
        """For how long a reply was tried."""
        return self._pool.clock.due_ms() - reply.tried_from if reply.tried_from else 0

    def _next_time(self, conversation: str) -> int:
        """The time of the next message, seconds UTC: after the one before, as clients sort by whole seconds."""
        if len(self._latest) > _LATEST_MAX:
            self._latest.clear()
        return max(self._pool.clock.now_ms() // 1_000, self._latest.get(conversation, 0) + 1)


def _result_of(found: Sequence[Published], *, is_patient: bool) -> SendResult:
    """The result of a try from the states of the events of all receivers."""
    details = "; ".join(dict.fromkeys(one.detail for one in found if one.detail))
    kinds = {one.state for one in found}
    is_kept = PublishState.KEPT in kinds
    if is_kept and (not is_patient or kinds <= {PublishState.KEPT, PublishState.REFUSED}):
        return SendResult(Delivered.CONFIRMED, f"not to everybody: {details}" if details else "")
    if PublishState.THROTTLED in kinds:
        return SendResult(Delivered.RETRY, details, retry_after_ms=_THROTTLED_MS, outage=True)
    if PublishState.DOUBTFUL in kinds:
        return SendResult(Delivered.DOUBT, details)
    if PublishState.UNSENT in kinds:
        return SendResult(Delivered.RETRY, f"not sent: {details}", outage=True)
    return SendResult(Delivered.DEAD, details)
