"""Another answer to a message: a request without words, which names the message that is answered once more.

The words stay with the message that was said. The request has a turn and a reply of its own, in a lane that begins
with what was said before that message (spec: doors, A4).
"""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

from keepsaid.domain.message import StoredMessage, payload_fields
from keepsaid.domain.prompt import Record, Role

REGENERATE = "regenerate"
"""The event of such a request."""

FIELD = "answers"
"""The field of its payload that has the number of the message."""

_BYTES_MAX = 1_000_000


def answered_by(request: StoredMessage) -> int | None:
    """The number of the message that a request answers once more; None for any other message."""
    if request.damaged or request.inbound.content.event != REGENERATE:
        return None
    number = _fields(request).get(FIELD)
    return number if isinstance(number, int) and not isinstance(number, bool) else None


def with_words(request: StoredMessage, said: StoredMessage) -> StoredMessage | None:
    """The request as a turn reads it: with the words of the message, and what came with them.

    None where the message is not the sender's own in the same conversation, or was forgotten.
    """
    ours, origin = request.inbound.origin, said.inbound.origin
    is_own = (ours.sender, *request.lane[:3]) == (origin.sender, *said.lane[:3])
    content = said.inbound.content
    if not is_own or said.damaged or not (content.text.strip() or content.payload):
        return None
    fields = {**_fields(said), **{name: one for name, one in _fields(request).items() if name != FIELD}}
    payload = json.dumps(fields, ensure_ascii=False, sort_keys=True).encode("utf-8", "replace")
    return replace(request, inbound=replace(request.inbound, content=replace(content, payload=payload)))


def record_of(message: StoredMessage, said_id: int) -> Record:
    """The record of a request with words: it shows the message that was said."""
    origin = message.inbound.origin
    return Record(Role.USER, message.text, speaker=origin.name or origin.sender, ref=f"message:{said_id}")


def _fields(message: StoredMessage) -> dict[str, Any]:
    return payload_fields(message.inbound.content.payload, _BYTES_MAX)
