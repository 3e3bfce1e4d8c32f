"""Slack as a channel that answers: a reply is split into messages, each sent once the one before is.

Each message has the key of its part in its metadata. If nobody knows whether it arrived, it is looked up by that key
before it is sent again; if it cannot be found, it is sent again, and says so.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import field, replace

from keepsaid.adapters.channels.abilities import SLACK
from keepsaid.adapters.channels.pace import SendingPace
from keepsaid.adapters.channels.sending import send_parts
from keepsaid.adapters.channels.slack_api import (
    SlackApi,
    SlackRefused,
    SlackUnreachable,
    refused,
    unreachable,
)
from keepsaid.adapters.channels.slack_find import WHOLE, find_sent, metadata_of
from keepsaid.adapters.channels.slack_line import SlackAccount
from keepsaid.adapters.channels.slack_markdown import markdown_parts, plain_parts
from keepsaid.adapters.channels.slack_reactions import add_reaction
from keepsaid.adapters.channels.slack_updates import NAME
from keepsaid.adapters.channels.slack_uploads import FILE, REPEATED, SlackUploads, file_body, instead_of
from keepsaid.adapters.channels.uploads import UploadSource, no_uploads
from keepsaid.domain.message import Attachment, Lane, topic_of
from keepsaid.domain.reply import Delivered, Sending, SendResult, StoredReply
from keepsaid.domain.reply_parts import ReplyPart
from keepsaid.errors import FileRefused, FileUnavailable, ToolError
from keepsaid.ports.channel import ReactionTarget
from keepsaid.values import frozen

CONVERSATION = "slack:"
"""The beginning of the name of a conversation; after it comes the id of the channel."""

_INLINE_CHARS_MAX = 4_096
"""A longer text is split in a thread, so that it does not hold up the event loop."""

_SHOWN_WITHIN_S = 5.0
_STATUS = "is typing..."


@frozen
class _Found:
    """The messages of a part that are at Slack, by number; or the result that stands `instead` of another try."""

    sent: Mapping[int, str] = field(default_factory=dict)
    instead: SendResult | None = None
    note: str = ""


class SlackChannel:
    """Sends by one bot; `uploads` reads files."""

    name = NAME
    sending = Sending.PUSH
    abilities = SLACK

    typing_ms = int(SLACK.typing_s * 1_000)

    def __init__(self, bot: SlackAccount, pace: SendingPace, uploads: UploadSource = no_uploads) -> None:
        self._api = bot.api
        self._bot = bot
        self._pace = pace
        self._uploads = SlackUploads(bot.api, uploads)

    @property
    def account(self) -> str:
        """The team and the user id of the bot, `T1:U1`; "" until it is known."""
        return self._bot.id

    async def send(self, reply: StoredReply) -> SendResult:
        """Send all parts at once, for what is only tried; never raises."""
        return await send_parts(self, reply)

    async def split(self, reply: StoredReply) -> Sequence[str]:
        """Each part as the parameters of `chat.postMessage`, in JSON; that of a file names it."""
        if len(reply.draft.text) > _INLINE_CHARS_MAX:
            return await asyncio.to_thread(parts_of, reply)
        return parts_of(reply)

    async def send_part(self, reply: StoredReply, part: ReplyPart) -> SendResult:
        """Send a part once, unless it is found at Slack; never raises."""
        if not self.account and (unknown := await self._look_up_bot()) is not None:
            return unknown
        if reply.lane.account != self.account:
            return SendResult(Delivered.REFUSED, f"the account {reply.lane.account} is not set up here any more")
        channel = _channel_of(reply.lane)
        if (held_ms := await self._pace.enter(channel)) is not None:
            return SendResult(Delivered.RETRY, "the rate limit is reached", retry_after_ms=held_ms, outage=True)
        message = json.loads(part.body)
        found = await self._look_up(reply, part, message) if part.possible_duplicate else _Found()
        if found.instead is not None:
            return found.instead
        note = found.note
        if FILE in message:
            sharing = await self._uploads.share(reply, message, is_repeat=part.possible_duplicate)
            if isinstance(sharing, SendResult):
                return _noted(sharing, note)
            note = "; ".join(filter(None, (f"a file was not sent: {sharing}", note)))
            message = instead_of(message, sharing)
        attempt = _Attempt(self._api, message, part, found.sent)
        result = await attempt.send()
        if attempt.throttled is not None:
            self._pace.hold(channel, attempt.throttled)
        return _noted(result, note)

    async def _look_up_bot(self) -> SendResult | None:
        """Look up who the bot is; returns the result of a try where that fails."""
        try:
            await self._bot.bot()
        except SlackUnreachable as error:
            return SendResult(Delivered.RETRY, f"not sent: {error}", outage=True)
        except SlackRefused as error:
            return replace(refused(error), outcome=Delivered.RETRY, outage=True)
        return None

    async def _look_up(self, reply: StoredReply, part: ReplyPart, message: Mapping[str, object]) -> _Found:
        """Look whether a part arrived that may have; where nobody can look, it is sent again."""
        try:
            if FILE in message:
                sent = await self._uploads.find(self.account, reply, message, part.key)
            else:
                since = reply.tried_from or reply.created_at
                sent = await find_sent(self._api, self.account, message, part.key, since)
        except SlackUnreachable as error:
            what = f"not sent again, as nobody could look whether it arrived: {error}"
            return _Found(instead=SendResult(Delivered.RETRY, what, outage=True))
        except SlackRefused as error:
            passes = error.is_throttled or error.is_in_doubt or error.is_bad_token
            if passes and error.error != "missing_scope":
                return _Found(instead=replace(refused(error), outcome=Delivered.RETRY, outage=True))
            return _Found(note=f"nobody could look whether it had arrived: {error}")
        if WHOLE in sent:
            return _Found(instead=SendResult(Delivered.CONFIRMED, "it had arrived", sent[WHOLE]))
        return _Found(sent)

    async def fetch(self, account: str, file: Attachment) -> AsyncGenerator[bytes, None]:
        """The bytes of a file that came with a message to this bot."""
        try:
            bot = await self._bot.bot()
        except SlackUnreachable:
            raise FileUnavailable("Slack cannot be reached") from None
        except SlackRefused as error:
            raise FileUnavailable(f"Slack does not say who the bot is: {error}", error.retry_after_s) from None
        if account != bot.account:
            raise FileRefused(f"the account {account} is not set up here any more")
        async with aclosing(self._api.fetch(file)) as pieces:
            async for piece in pieces:
                yield piece

    async def show_typing(self, lane: Lane) -> bool:
        """Show that the bot types in a thread of its assistant, the only place for that; never raises."""
        channel, thread = _channel_of(lane), topic_of(lane)
        if lane.account != self.account or thread is None or not channel.startswith("D"):
            return False
        status = {"channel_id": channel, "thread_ts": thread, "status": _STATUS}
        try:
            await self._api.call("assistant.threads.setStatus", status, _SHOWN_WITHIN_S)
        except SlackUnreachable:
            return True
        except SlackRefused:
            return False
        return True

    async def show_draft(self, lane: Lane, number: int, text: str) -> bool:  # noqa: ARG002 - the port's signature
        """Show nothing: at Slack an unfinished answer would be a message."""
        return False

    async def react(self, lane: Lane, target: ReactionTarget, emoji: str) -> None:
        """Give a message of the lane an emoji; raises ToolError."""
        if not self.account and await self._look_up_bot() is not None:
            raise ToolError("Slack does not say who the bot is; nothing was done")
        if lane.account != self.account:
            raise ToolError(f"the account {lane.account} is not set up here any more")
        await add_reaction(self._api, _channel_of(lane), target.provider_id, emoji)

    async def close(self) -> None:
        """Close the connections."""
        await self._api.close()


class _Attempt:
    """One attempt to send a part: as Markdown, or as plain texts where Slack refuses that.

    `sent` has the messages that arrived before, by their numbers. `throttled` is for how long Slack wants no more
    messages in the channel, milliseconds; None if it does not say so.
    """

    def __init__(self, api: SlackApi, message: Mapping[str, object], part: ReplyPart, sent: Mapping[int, str]) -> None:
        self._api = api
        self._message = message
        self._key = part.key
        self._is_repeat = part.possible_duplicate
        self._sent = dict(sent)
        self.throttled: int | None = None

    async def send(self) -> SendResult:
        """Send what did not arrive yet; never raises."""
        try:
            detail = "" if not self._sent else "sent as plain text"
            if not self._sent:
                detail = await self._send_whole()
            if WHOLE not in self._sent:
                await self._send_plain()
        except SlackUnreachable as error:
            return self._kept_in_doubt(unreachable(error))
        except SlackRefused as error:
            result = refused(error)
            if error.is_throttled:
                self.throttled = result.retry_after_ms
            return self._kept_in_doubt(result)
        return SendResult(Delivered.CONFIRMED, detail, self._sent.get(WHOLE) or self._sent.get(0))

    async def _send_whole(self) -> str:
        """Send the part as Markdown; returns the reason where Slack refuses its form."""
        text = f"{REPEATED if self._is_repeat else ''}{self._message['markdown_text']}"
        try:
            await self._post(WHOLE, {"markdown_text": text})
        except SlackRefused as error:
            if not error.is_format:
                raise
            return f"sent as plain text: {error}"
        return ""

    async def _send_plain(self) -> None:
        """Send the texts that did not arrive yet; the first of them says that it may be a repeat."""
        for n, text in enumerate(plain_parts(str(self._message["markdown_text"]))):
            if n in self._sent:
                continue
            marked = f"{REPEATED if self._is_repeat else ''}{text}"
            await self._post(n, {"text": marked, "mrkdwn": False, "parse": "none", "link_names": False})
            self._is_repeat = False

    async def _post(self, number: int, text: Mapping[str, object]) -> None:
        place = {name: one for name, one in self._message.items() if name != "markdown_text"}
        made = await self._api.call("chat.postMessage", {**place, **text, "metadata": metadata_of(self._key, number)})
        ts = made.get("ts")
        self._sent[number] = ts if isinstance(ts, str) else ""

    def _kept_in_doubt(self, result: SendResult) -> SendResult:
        """The result of a try; if some of its texts arrived, the next try has to look for them first."""
        if self._sent and result.outcome is Delivered.RETRY:
            return replace(result, outcome=Delivered.DOUBT, detail=f"sent in part: {result.detail}")
        return result


def parts_of(reply: StoredReply) -> Sequence[str]:
    """The bodies of the parts of a reply: in the thread of its lane, or in the channel itself."""
    place: dict[str, object] = {"channel": _channel_of(reply.lane)}
    if (thread := topic_of(reply.lane)) is not None:
        place |= {"thread_ts": thread, "reply_broadcast": False}
    place |= {"unfurl_links": False, "unfurl_media": False}
    parts: list[dict[str, object]] = [
        {**place, "markdown_text": part} for part in markdown_parts(reply.draft.text) if part.strip()
    ]
    parts += [file_body(place, file) for file in reply.files]
    return [json.dumps(part) for part in parts or [{**place, "markdown_text": "(no words)"}]]


def _noted(result: SendResult, note: str) -> SendResult:
    """A result with a note after its detail."""
    return replace(result, detail="; ".join(filter(None, (result.detail, note))))


def _channel_of(lane: Lane) -> str:
    """The id of the channel of a lane."""
    return lane.conversation.removeprefix(CONVERSATION)
