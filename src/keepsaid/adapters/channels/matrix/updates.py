"""Events of Matrix as messages to the agent, and whether one of them mentions its account."""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Mapping
from hashlib import sha256
from urllib.parse import unquote

from keepsaid.adapters.channels.matrix.events import ROOM, MatrixPlace, RelatedEvent, read
from keepsaid.domain.message import UNREADABLE, IgnoredUpdate
from keepsaid.errors import InputError
from keepsaid.ports.channel import Incoming
from keepsaid.values import frozen

NAME = "matrix"
ENCRYPTED_EVENT, ENCRYPTION = "m.room.encrypted", "m.room.encryption"
ENCRYPTED_ROOMS = "encrypted"
"""The name of the cursor that has the rooms that are encrypted."""

ENCRYPTED = "encrypted"
"""The text of a message that is kept as it came, because its room is encrypted."""

Event = Mapping[str, object]
_log = logging.getLogger("keepsaid.matrix")
_PILL = re.compile(r"https://matrix\.to/#/([^\"'<>?/\s]{1,600})")
"""How a mention is written in `formatted_body`, by clients that write no `m.mentions`."""


@frozen
class MatrixUser:
    """Who reads: the user id, which is the account, and the id of the device to which the token belongs."""

    id: str
    device: str = ""


def incoming_of(
    event: Event, place: MatrixPlace, user: MatrixUser, target: RelatedEvent | None = None
) -> Incoming | None:
    """The message in an event of a room; None where it holds none, or one of the account itself.

    One that cannot be read is kept, and answered by nobody. `target` is the event that an edit or a redaction is of.
    """
    if event.get("sender") == user.id:
        return None
    raw = raw_of(event)
    if event.get("type") == ENCRYPTED_EVENT:
        return _encrypted(event, place, user, raw)
    try:
        said = read(event, place, target)
    except InputError as error:
        _log.warning("an event of Matrix cannot be read: %s", error.what, extra={"code": error.code})
        return unreadable(raw, key_of(event, raw), user)
    if isinstance(said, IgnoredUpdate) or said.sender == user.id:
        return None
    return Incoming(
        said.text,
        said.sender,
        said.conversation,
        said.delivery,
        said.provider_id or None,
        said.reply_to,
        said.topic,
        said.name,
        said.direct,
        raw,
        said.conversation_name,
        user.id,
        said.event,
        addressed=_names(event, user),
        by_bot=said.by_bot,
        files=said.files,
    )


def unreadable(raw: bytes, key: str, user: MatrixUser) -> Incoming:
    """An event that cannot be read, as it came: it is kept, and answered by nobody."""
    return Incoming("", NAME, "matrix:unreadable", key, payload=raw, event=UNREADABLE, account=user.id)


def raw_of(event: object) -> bytes:
    """An event as JSON, as it is stored."""
    return json.dumps(event, ensure_ascii=False).encode("utf-8", "surrogatepass")


def key_of(event: Event, raw: bytes) -> str:
    """The key of an event that cannot be read: its id, or else a hash of it."""
    number = event.get("event_id")
    return f"{ROOM}{number}" if isinstance(number, str) and number else f"{ROOM}body:{sha256(raw).hexdigest()}"


def _encrypted(event: Event, place: MatrixPlace, user: MatrixUser, raw: bytes) -> Incoming:
    """A message of an encrypted room, kept in its conversation until it can be read."""
    sender = event.get("sender")
    return Incoming(
        ENCRYPTED,
        sender if isinstance(sender, str) and sender else NAME,
        f"{ROOM}{place.room}",
        key_of(event, raw),
        name=place.sender_name,
        direct=place.direct,
        payload=raw,
        conversation_name=place.title,
        account=user.id,
        event=UNREADABLE,
    )


def _names(event: Event, user: MatrixUser) -> bool:
    """Whether an event mentions the account: by `m.mentions`, or by a link to it where the client writes none."""
    content = event.get("content")
    told = content if isinstance(content, Mapping) else {}
    new = told.get("m.new_content")
    return any(_mentions(one, user) for one in (told, new) if isinstance(one, Mapping))


def _mentions(content: Mapping[str, object], user: MatrixUser) -> bool:
    mentions, formatted = content.get("m.mentions"), content.get("formatted_body")
    if isinstance(mentions, Mapping):
        named = mentions.get("user_ids")
        return isinstance(named, list) and user.id in named
    if not isinstance(formatted, str):
        return False
    formatted = formatted.rpartition("</mx-reply>")[2]
    return any(unquote(found.group(1)) == user.id for found in _PILL.finditer(formatted))
