"""Slack's events and slash commands as messages, and whether the bot itself is named in one."""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Callable, Mapping
from hashlib import sha256

from keepsaid.adapters.channels.media import slack as media
from keepsaid.domain.message import UNREADABLE, IgnoredUpdate, MediaMessage
from keepsaid.errors import InputError
from keepsaid.ports.channel import Incoming
from keepsaid.values import frozen

Payload = Mapping[str, object]

NAME = "slack"
_log = logging.getLogger("keepsaid.slack")
_MENTION = re.compile(r"<@([A-Z0-9]+)(?:\|[^<>]*)?>")
_SECRETS = ("token", "response_url")
"""Fields that prove who calls, or let anybody answer; they are not stored."""


@frozen
class SlackBot:
    """Who reads: the id of the team, the user id of the bot in it, and the name of the bot."""

    team: str
    user: str
    name: str = ""

    @property
    def account(self) -> str:
        """The account of the bot: `T1:U1`."""
        return f"{self.team}:{self.user}"


def incoming_of_event(payload: Payload, bot: SlackBot) -> Incoming | None:
    """The message in an `event_callback`; None where it holds none, or one of a bot.

    One that cannot be read is kept, and answered by nobody.
    """
    event = payload.get("event")
    return _read(payload, bot, _event_read, event if isinstance(event, Mapping) else {})


def incoming_of_command(payload: Payload, bot: SlackBot) -> Incoming | None:
    """The slash command in a payload. One that cannot be read is kept, and answered by nobody."""
    return _read(payload, bot, media.read_command, {})


def unreadable(raw: bytes, key: str, bot: SlackBot) -> Incoming:
    """An update that cannot be read, as it came: it is kept, and answered by nobody."""
    return Incoming("", NAME, "slack:unreadable", key, payload=raw, event=UNREADABLE, account=bot.account)


def _event_read(payload: Payload) -> MediaMessage | IgnoredUpdate:
    return media.read_reaction(payload) or media.read(payload)


def _read(
    payload: Payload, bot: SlackBot, read: Callable[[Payload], MediaMessage | IgnoredUpdate], event: Payload
) -> Incoming | None:
    """A payload as a message; `event` is the event in it, empty for a slash command."""
    kept = {name: one for name, one in payload.items() if name not in _SECRETS}
    raw = json.dumps(kept, ensure_ascii=False).encode("utf-8", "surrogatepass")
    try:
        said = read(payload)
    except InputError as error:
        _log.warning("an event of Slack cannot be read: %s", error.what, extra={"code": error.code})
        return unreadable(raw, _key_of(payload, raw), bot)
    if isinstance(said, IgnoredUpdate) or said.sender == bot.user:
        return None
    changed = event.get("message")
    message = changed if event.get("subtype") == "message_changed" and isinstance(changed, Mapping) else event
    addressed = not event or _calls(message, bot)
    return Incoming(
        said.text,
        said.sender,
        said.conversation,
        said.delivery,
        said.provider_id or None,
        said.reply_to or _answered(message, bot),
        said.topic or (_own_thread(said, message) if addressed else None),
        said.name,
        said.direct,
        raw,
        account=bot.account,
        event=said.event,
        addressed=addressed,
        by_bot=said.by_bot,
        files=said.files,
    )


def _calls(message: Payload, bot: SlackBot) -> bool:
    """Whether a message mentions the bot, or is in a thread that the bot began."""
    text = message.get("text")
    if isinstance(text, str) and any(found.group(1) == bot.user for found in _MENTION.finditer(text)):
        return True
    return message.get("type") == "app_mention" or _answered(message, bot) is not None


def _answered(message: Payload, bot: SlackBot) -> str | None:
    """The message of the bot in whose thread a message is; None in any other thread, and outside of one."""
    thread = message.get("thread_ts")
    return thread if message.get("parent_user_id") == bot.user and isinstance(thread, str) else None


def _own_thread(said: MediaMessage, message: Payload) -> str | None:
    """The thread that the answer to a message opens: in a channel each message to the bot begins one of its own."""
    if said.direct or not said.provider_id or media.is_direct(str(message.get("channel", ""))):
        return None
    return said.provider_id


def _key_of(payload: Payload, raw: bytes) -> str:
    """The key of an update that cannot be read: Slack repeats it with the same id."""
    number = payload.get("event_id") or payload.get("trigger_id")
    return f"slack:update:{number}" if isinstance(number, str) else f"slack:body:{sha256(raw).hexdigest()}"
