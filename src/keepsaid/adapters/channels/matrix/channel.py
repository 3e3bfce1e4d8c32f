"""Matrix as a channel that answers: a reply is split into messages, each sent once the one before is.

A message is sent under a transaction id, which belongs to the device of the token: for some time the server answers the
same request again with the first event. Later, or from another device, the room is read for the message before it is
sent again, marked.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import replace

from keepsaid.adapters.channels.abilities import MATRIX
from keepsaid.adapters.channels.matrix.api import MatrixRefused, MatrixUnreachable, path_of, refused, unreachable
from keepsaid.adapters.channels.matrix.contents import Content, marked, part_contents, plain_form, room_of
from keepsaid.adapters.channels.matrix.e2ee import MatrixCrypto
from keepsaid.adapters.channels.matrix.events import MESSAGE
from keepsaid.adapters.channels.matrix.find import KEY, find_sent
from keepsaid.adapters.channels.matrix.line import MatrixAccount
from keepsaid.adapters.channels.matrix.reactions import reason_of, send_reaction
from keepsaid.adapters.channels.matrix.updates import ENCRYPTED_EVENT, NAME, MatrixUser
from keepsaid.adapters.channels.matrix.uploads import FilePart, MatrixUploads
from keepsaid.adapters.channels.pace import SendingPace
from keepsaid.adapters.channels.sending import send_parts
from keepsaid.adapters.channels.uploads import UploadSource, no_uploads
from keepsaid.domain.message import Attachment, Lane
from keepsaid.domain.reply import Delivered, Sending, SendResult, StoredReply
from keepsaid.domain.reply_parts import ReplyPart
from keepsaid.errors import ChannelError, FileRefused, FileUnavailable, StoreError, ToolError
from keepsaid.ports.channel import ReactionTarget
from keepsaid.ports.runtime import Clock
from keepsaid.text.emoji import is_emoji
from keepsaid.values import frozen

_TRANSACTION_MS = int(MATRIX.keyed_s * 1_000)
"""Milliseconds after the first try in which a server returns the first event of a transaction."""

_INLINE_CHARS_MAX = 4_096
"""A longer text is read and split in a thread, so that it does not hold up the event loop."""

_SHOWN_WITHIN_S = 5.0
_TYPING_MS = 30_000
_ENCRYPTED = "the room is encrypted, and nothing is sent there as plain text"


_FORMS = ("content", "marked", "words")
"""What is kept of an encrypted part: its content, that of a possible repeat, and words in the place of its file."""


def _plain(contents: Sequence[Content], files: Sequence[FilePart]) -> list[dict[str, object]]:
    """Parts as they are sent where nothing is encrypted."""
    bodies: list[dict[str, object]] = [{"content": one} for one in contents]
    return bodies + [{"content": one.content, "words": one.words, "upload": one.upload} for one in files]


@frozen
class MatrixEvent:
    """An event as it is sent: its type, and its content."""

    kind: str
    content: Content


class MatrixChannel:
    """Sends by one account."""

    name = NAME
    sending = Sending.PUSH
    abilities = MATRIX

    typing_ms = int(MATRIX.typing_s * 1_000)

    def __init__(
        self, account: MatrixAccount, pace: SendingPace, clock: Clock, uploads: UploadSource = no_uploads
    ) -> None:
        self._bot = account
        self._uploads = MatrixUploads(account.api, uploads)
        self._api = account.api
        self._pace = pace
        self._clock = clock
        self._keys_from = 0.0

    @property
    def account(self) -> str:
        """The user id of the account; "" until it is known."""
        return self._bot.id

    async def send(self, reply: StoredReply) -> SendResult:
        """Send all parts at once, for what is only tried; never raises."""
        return await send_parts(self, reply)

    async def split(self, reply: StoredReply) -> Sequence[str]:
        """Each part as its room, the device that is to send it, and the content of its event, in JSON.

        In an encrypted room the content is encrypted here: what was used for it is stored before the part is. Raises
        ChannelError where that is not possible now, and StoreError.
        """
        user, is_direct = MatrixUser(""), False
        try:
            user = await self._bot.user()
            is_direct = (await self._bot.rooms.place(room_of(reply.lane), None, user)).direct
        except (MatrixRefused, MatrixUnreachable):
            pass  # what is not known now is looked up when it is sent: without a device, a repeat is marked
        if len(reply.draft.text) > _INLINE_CHARS_MAX:
            contents = await asyncio.to_thread(part_contents, reply, is_direct=is_direct)
        else:
            contents = part_contents(reply, is_direct=is_direct)
        needs_server = self._bot.crypto is not None or reply.files
        bodies = await self._made(reply, contents, is_direct=is_direct) if needs_server else _plain(contents, ())
        return [json.dumps({"room": room_of(reply.lane), "device": user.device, **body}) for body in bodies]

    async def _made(
        self, reply: StoredReply, contents: Sequence[Content], *, is_direct: bool
    ) -> list[dict[str, object]]:
        """Contents as they are sent, and those of files behind them: encrypted, if their room is.

        An encrypted part has the form of a possible repeat, and that of words in the place of a file, beside its own.
        """
        room = room_of(reply.lane)
        if self._clock.monotonic_ms() < self._keys_from:
            raise ChannelError("the homeserver wants fewer requests now")
        files: Sequence[FilePart] = ()
        try:
            user = await self._bot.user()
            crypto = await self._crypto_in(reply, room, user)
            files = await self._uploads.prepare(reply, len(contents), sealed=crypto is not None, is_direct=is_direct)
            if crypto is None:
                return _plain(contents, files)
            forms: list[tuple[Content, ...]] = [(one, marked(one)) for one in contents]
            forms += [(one.content, marked(one.content), one.words) for one in files]
            sealed = await crypto.seal(user, room, MESSAGE, forms)
        except MatrixUnreachable as error:
            raise ChannelError(
                f"the room is encrypted or may be, or there are files, and the homeserver cannot be reached: {error}"
            ) from None
        except MatrixRefused as error:
            if (held_ms := self._refused(error).retry_after_ms) is not None:
                self._keys_from = self._clock.monotonic_ms() + held_ms
            if error.passes:
                raise ChannelError(f"what the reply needs cannot be looked up: {error}") from None
            return _plain(contents, files)
        bodies: list[dict[str, object]] = []
        for given, made in zip(forms, sealed, strict=True):
            named = zip(_FORMS, made, strict=False)
            bodies.append({"type": ENCRYPTED_EVENT, **{name: {**form, KEY: given[0][KEY]} for name, form in named}})
        for body, file in zip(bodies[len(contents) :], files, strict=True):
            body["upload"] = file.upload
        return bodies

    async def _crypto_in(self, reply: StoredReply, room: str, user: MatrixUser) -> MatrixCrypto | None:
        """What encrypts for a room; None where it is not encrypted. Raises as a request."""
        crypto = self._bot.crypto_of(user)
        if crypto is None or reply.lane.account != user.id:
            return None
        is_encrypted = await crypto.was_encrypted(user, room) or await self._bot.rooms.is_encrypted(room)
        return crypto if is_encrypted else None

    async def send_part(self, reply: StoredReply, part: ReplyPart) -> SendResult:
        """Send a part once, unless it is found in its room; never raises."""
        room, sent_by = room_of(reply.lane), json.loads(part.body)
        if not room.startswith("!"):
            return SendResult(Delivered.DEAD, f"{reply.lane.conversation} is not a room of Matrix")
        event, note = MatrixEvent(sent_by.get("type", MESSAGE), sent_by["content"]), ""
        try:
            user = await self._bot.user()
            if (held := await self._held(reply, event, room, user)) is not None:
                return held
            if part.possible_duplicate and not self._is_remembered(reply, sent_by.get("device"), user.device):
                found, note = await self._find(reply, part, room)
                if found is not None:
                    return SendResult(Delivered.CONFIRMED, "an earlier try arrived", found)
                event = MatrixEvent(event.kind, sent_by.get("marked") or marked(event.content))
            if (upload := sent_by.get("upload")) and (why := await self._uploads.bring(reply, upload)):
                event, note = MatrixEvent(event.kind, sent_by["words"]), f"a file was not sent: {why}"
            if event.kind != MESSAGE and (crypto := self._bot.crypto_of(user)) is not None:
                await crypto.deliver(user)
        except MatrixUnreachable as error:
            return SendResult(Delivered.RETRY, f"not sent: {error}", outage=True)
        except StoreError as error:
            return SendResult(Delivered.RETRY, f"not sent: {error.what}", outage=True)
        except MatrixRefused as error:
            return self._not_sent(error)
        result = await self._put(room, part.key, event)
        return replace(result, detail="; ".join(filter(None, (result.detail, note))))

    async def _held(self, reply: StoredReply, event: MatrixEvent, room: str, user: MatrixUser) -> SendResult | None:
        """Why an event is not sent now, or never; None where it is. Raises MatrixRefused and MatrixUnreachable."""
        if reply.lane.account != user.id:
            return SendResult(Delivered.REFUSED, f"the account {reply.lane.account} is not set up here any more")
        if (held_ms := await self._pace.enter(room)) is not None:
            return SendResult(Delivered.RETRY, "the rate limit is reached", retry_after_ms=held_ms, outage=True)
        if event.kind == MESSAGE and await self._bot.rooms.is_encrypted(room):
            return SendResult(Delivered.DEAD, f"{_ENCRYPTED}; nothing is sent elsewhere")
        return None

    async def fetch(self, account: str, file: Attachment) -> AsyncGenerator[bytes, None]:
        """The bytes of a file that came with a message to this account."""
        try:
            user = await self._bot.user()
        except MatrixUnreachable:
            raise FileUnavailable("the homeserver cannot be reached") from None
        except MatrixRefused as error:
            wait_s = None if error.retry_after_ms is None else error.retry_after_ms / 1_000
            raise FileUnavailable(f"the homeserver does not say whose the token is: {error}", wait_s) from None
        if account != user.id:
            raise FileRefused(f"the account {account} is not set up here any more")
        async with aclosing(self._api.fetch(file)) as pieces:
            async for piece in pieces:
                yield piece

    async def show_typing(self, lane: Lane) -> bool:
        """Show for half a minute that the account types; never raises."""
        room = room_of(lane)
        if not self.account or lane.account != self.account or not room.startswith("!"):
            return False
        path = path_of("rooms", room, "typing", self.account)
        try:
            await self._api.call("PUT", path, {"typing": True, "timeout": _TYPING_MS}, timeout_s=_SHOWN_WITHIN_S)
        except MatrixUnreachable:
            return True
        except MatrixRefused as error:
            return error.passes
        return True

    async def show_draft(self, lane: Lane, number: int, text: str) -> bool:  # noqa: ARG002 - the port's signature
        """Show nothing: at Matrix an unfinished answer would be a message."""
        return False

    async def react(self, lane: Lane, target: ReactionTarget, emoji: str) -> None:
        """Give an event of the room an emoji; raises ToolError."""
        room = room_of(lane)
        if not room.startswith("!") or not target.provider_id.startswith("$"):
            raise ToolError("that message cannot get a reaction: it is not an event of a room of Matrix")
        if not is_emoji(emoji):
            raise ToolError("emoji must be one emoji of Unicode")
        try:
            user = await self._bot.user()
            is_unread = self._bot.crypto_of(user) is None and await self._bot.rooms.is_encrypted(room)
        except MatrixUnreachable:
            raise ToolError("the homeserver does not answer; nothing was done") from None
        except MatrixRefused as error:
            raise ToolError(reason_of(error)) from None
        if lane.account != user.id:
            raise ToolError(f"the account {lane.account} is not set up here any more")
        if is_unread:
            raise ToolError(_ENCRYPTED)
        if await self._pace.enter(room) is not None:
            raise ToolError("the rate limit of this room is reached; nothing was done")
        await send_reaction(self._api, room, target.provider_id, emoji)

    async def close(self) -> None:
        """Close the connections."""
        await self._api.close()

    def _is_remembered(self, reply: StoredReply, device: object, device_now: str) -> bool:
        """Whether the server still knows the transaction of the first try to send a reply."""
        first = reply.tried_from or reply.created_at
        return bool(device) and device == device_now and self._clock.due_ms() - first <= _TRANSACTION_MS

    async def _find(self, reply: StoredReply, part: ReplyPart, room: str) -> tuple[str | None, str]:
        """The event of a part that arrived, or why nobody could look. Raises MatrixRefused and MatrixUnreachable."""
        first = reply.tried_from or reply.created_at
        try:
            return await find_sent(self._api, room, self.account, part.key, first), ""
        except MatrixRefused as error:
            if error.passes:
                raise
            return None, f"nobody could look whether it had arrived: {error}"

    def _not_sent(self, error: MatrixRefused) -> SendResult:
        """The result of a try in which something was looked up in vain; the message itself was not sent."""
        result = self._refused(error)
        if result.outcome is Delivered.DEAD:
            return result
        return replace(result, outcome=Delivered.RETRY, outage=True)

    def _refused(self, error: MatrixRefused) -> SendResult:
        """The result of a refusal; a rate limit holds the whole account, as servers count by user."""
        result = refused(error)
        if error.is_throttled and result.retry_after_ms is not None:
            self._pace.hold("", result.retry_after_ms)
        if error.is_bad_token:
            self._bot.forget()
        return result

    async def _put(self, room: str, key: str, event: MatrixEvent) -> SendResult:
        """Send an event under its key; a message as plain text where the server refuses its form."""
        detail, content = "", event.content
        path = path_of("rooms", room, "send", event.kind, key)
        while True:
            try:
                made = await self._api.call("PUT", path, content)
            except MatrixUnreachable as error:
                return unreachable(error)
            except MatrixRefused as error:
                is_changeable = error.is_format and not detail and event.kind == MESSAGE
                if is_changeable and len(plain := plain_form(content)) < len(content):
                    detail, content = f"sent as plain text: {error}", plain
                    continue
                return self._refused(error)
            number = made.get("event_id")
            if not isinstance(number, str):
                return SendResult(Delivered.DOUBT, "the homeserver names no event")
            return SendResult(Delivered.CONFIRMED, detail, number)
